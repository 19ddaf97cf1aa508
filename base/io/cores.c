#include "base/io/cores.h"

#include <limits.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define LINE_BYTES 4096

/* "QUOTA PERIOD" in microseconds, or two files with one each; cgroups(7). 0: no quota. */
static double read_quota(const char *folder, bool is_version_2)
{
    char path[PATH_MAX + 32];
    double quota = 0, period = 0;
    snprintf(path, sizeof path, "%s/%s", folder, is_version_2 ? "cpu.max" : "cpu.cfs_quota_us");
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return 0;
    int found = is_version_2 ? fscanf(file, "%lf %lf", &quota, &period) /* "max" is no number */
                             : fscanf(file, "%lf", &quota) + 1;
    fclose(file);
    if (!is_version_2) {
        snprintf(path, sizeof path, "%s/cpu.cfs_period_us", folder);
        file = fopen(path, "re");
        if (file == NULL)
            return 0;
        found = fscanf(file, "%lf", &period) == 1 ? found : 0;
        fclose(file);
    }
    return found == 2 && quota > 0 && period > 0 ? quota / period : 0;
}

/* The least quota of a group and of those above it. */
static double least_above(const char *root, const char *controller, char *group, bool is_version_2)
{
    char folder[PATH_MAX];
    double least = 0;
    for (;;) {
        snprintf(folder, sizeof folder, "%s%s%s", root, controller, group);
        double quota = read_quota(folder, is_version_2);
        least = quota > 0 && (least == 0 || quota < least) ? quota : least;
        char *slash = strrchr(group, '/');
        if (slash == NULL)
            return least;
        *slash = 0;
    }
}

/* Is "cpu" among the controllers "cpu,cpuacct:..."? */
static bool has_cpu(const char *controllers)
{
    for (const char *at = controllers; *at != 0; at += *at == ',') {
        size_t n = strcspn(at, ",");
        if (n == 3 && memcmp(at, "cpu", 3) == 0)
            return true;
        at += n;
    }
    return false;
}

/* Lines are "0::/group" (version 2) or "4:cpu,cpuacct:/group" (version 1). */
double cores_of_groups(const char *root, const char *groups)
{
    char line[LINE_BYTES];
    double least = 0;
    FILE *file = fopen(groups, "re");
    if (file == NULL)
        return 0;
    while (fgets(line, sizeof line, file) != NULL) {
        line[strcspn(line, "\n")] = 0;
        char *controllers = strchr(line, ':');
        char *group = controllers != NULL ? strchr(controllers + 1, ':') : NULL;
        if (group == NULL)
            continue;
        *group++ = 0;
        double quota = 0;
        if (controllers[1] == 0)
            quota = least_above(root, "", group, true);
        else if (has_cpu(controllers + 1))
            quota = least_above(root, "/cpu", group, false);
        least = quota > 0 && (least == 0 || quota < least) ? quota : least;
    }
    fclose(file);
    return least;
}

static pthread_once_t read_once = PTHREAD_ONCE_INIT;
static double our_quota;

static void read_our_quota(void)
{
    our_quota = cores_of_groups("/sys/fs/cgroup", "/proc/self/cgroup");
}

int cores_there_are(void)
{
    pthread_once(&read_once, read_our_quota);
    cpu_set_t set;
    int cores = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
    int allowed = our_quota > 0 && our_quota < cores ? (int)ceil(our_quota - 0.01) : cores;
    return allowed > 0 ? allowed : 1;
}
