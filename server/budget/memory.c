#include "server/budget/memory.h"

#include <limits.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define LINE_BYTES 4096

/* The number in a file; SIZE_MAX: there is none ("max", no file). */
static size_t read_number(const char *path)
{
    unsigned long long value;
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return SIZE_MAX;
    int found = fscanf(file, "%llu", &value);
    fclose(file);
    return found == 1 && value < SIZE_MAX ? (size_t)value : SIZE_MAX;
}

/* The least limit of a group and of those above it: any of them may have one. */
static size_t least_above(const char *root, const char *controller, char *group, const char *file)
{
    char path[PATH_MAX];
    size_t least = SIZE_MAX;
    for (;;) {
        snprintf(path, sizeof path, "%s%s%s/%s", root, controller, group, file);
        size_t limit = read_number(path);
        least = limit < least ? limit : least;
        char *slash = strrchr(group, '/');
        if (slash == NULL)
            return least;
        *slash = 0;
    }
}

/* Lines are "0::/group" (version 2) or "4:memory:/group" (version 1); cgroups(7). */
size_t memory_of_groups(const char *root, const char *groups)
{
    char line[LINE_BYTES];
    size_t least = SIZE_MAX;
    FILE *file = fopen(groups, "re");
    if (file == NULL)
        return SIZE_MAX;
    while (fgets(line, sizeof line, file) != NULL) {
        line[strcspn(line, "\n")] = 0;
        char *controllers = strchr(line, ':');
        char *group = controllers != NULL ? strchr(controllers + 1, ':') : NULL;
        if (group == NULL)
            continue;
        *group++ = 0;
        size_t limit = SIZE_MAX;
        if (controllers[1] == 0)
            limit = least_above(root, "", group, "memory.max");
        else if (strstr(controllers + 1, "memory") != NULL)
            limit = least_above(root, "/memory", group, "memory.limit_in_bytes");
        least = limit < least ? limit : least;
    }
    fclose(file);
    return least;
}

static size_t address_space_left(void)
{
    struct rlimit limit;
    unsigned long long pages = 0;
    if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
        return SIZE_MAX;
    FILE *file = fopen("/proc/self/statm", "re");
    if (file != NULL) {
        if (fscanf(file, "%llu", &pages) != 1)
            pages = 0;
        fclose(file);
    }
    size_t used = (size_t)pages * (size_t)sysconf(_SC_PAGESIZE);
    return used < limit.rlim_cur ? limit.rlim_cur - used : 0;
}

static pthread_once_t read_once = PTHREAD_ONCE_INIT;
static size_t limit_of_groups;

static void read_our_limit(void)
{
    limit_of_groups = memory_of_groups("/sys/fs/cgroup", "/proc/self/cgroup");
}

size_t memory_there_is(void)
{
    pthread_once(&read_once, read_our_limit);
    size_t machine = (size_t)sysconf(_SC_PHYS_PAGES) * (size_t)sysconf(_SC_PAGESIZE);
    size_t space = address_space_left();
    size_t least = machine < limit_of_groups ? machine : limit_of_groups;
    return least < space ? least : space;
}
