/* Runs every file of the corpora through its target, without libFuzzer: part of ./test.
 *
 *   fuzz_replay                   all corpora of the tree
 *   fuzz_replay TARGET FILE...    some files: to look at what a fuzzer has found */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/io/file_reader.h"
#include "tests/fuzz/fuzz.h"

#define FILE_BYTES_MAX (1 << 20)

static const struct {
    const char *name;
    fuzz_run *run;
} targets[] = {
#define FUZZ_TARGET(name) {#name, fuzz_##name},
#include "tests/fuzz/targets.inc"
#undef FUZZ_TARGET
};

static void replay(fuzz_run *run, const char *path)
{
    void *data;
    size_t bytes;
    if (file_reader_read_whole(path, FILE_BYTES_MAX, &data, &bytes)) {
        fprintf(stderr, "%s\n", status_message());
        exit(1);
    }
    /* A copy without anything after it: reading beyond the end is seen. */
    uint8_t *exact = malloc(bytes ? bytes : 1);
    memcpy(exact, data, bytes);
    run(exact, bytes);
    free(exact);
    free(data);
}

static int replay_folder(const char *name, fuzz_run *run)
{
    char path[800];
    int files = 0;
    snprintf(path, sizeof path, PENSTOCK_SOURCE_DIR "/tests/fuzz/corpus/%s", name);
    DIR *folder = opendir(path);
    if (folder == NULL)
        return 0;
    for (struct dirent *entry; (entry = readdir(folder)) != NULL;) {
        if (entry->d_name[0] == '.')
            continue;
        snprintf(path, sizeof path, PENSTOCK_SOURCE_DIR "/tests/fuzz/corpus/%s/%s", name,
                 entry->d_name);
        replay(run, path);
        files++;
    }
    closedir(folder);
    return files;
}

int main(int count, char **arguments)
{
    int passed = 0, failed = 0;
    for (size_t i = 0; i < sizeof targets / sizeof targets[0]; i++) {
        if (count == 1) {
            int files = replay_folder(targets[i].name, targets[i].run);
            if (files == 0)
                printf("no corpus of %s\n", targets[i].name);
            passed += files > 0;
            failed += files == 0;
        } else if (strcmp(arguments[1], targets[i].name) == 0) {
            for (int k = 2; k < count; k++)
                replay(targets[i].run, arguments[k]);
            passed++;
        }
    }
    printf("%d passed, %d failed\n", passed, failed);
    return passed == 0 || failed > 0;
}
