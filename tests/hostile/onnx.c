#include <criterion/criterion.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/io/file_reader.h"
#include "damage_onnx.h"
#include "run_onnx.h"

/* Models of ../shared, of tests/data and of tests/fuzz with one to three changes: each is rejected
 * with a message, or runs to the end, from the file through shapes and folding to a plan and its
 * results. HOSTILE_ROUNDS sets the number of rounds; with ASan this is a fuzzer without coverage.
 */

#define ROUNDS 60 /* for each model */
/* That all damaged models of a folder take at most. AddressSanitizer keeps 256 MiB of freed memory.
 */
#ifdef __SANITIZE_ADDRESS__
#define RESIDENT_KIB_MAX (1024L << 10)
#else
#define RESIDENT_KIB_MAX (512L << 10)
#endif
#define MESSAGE_OF_NOTHING "status_message() says nothing of a failure"

static long rounds(void)
{
    const char *more = getenv("HOSTILE_ROUNDS");
    return more != NULL ? atol(more) : ROUNDS;
}

static void hurt(const uint8_t *data, size_t bytes, uint64_t seed)
{
    chance c = {seed};
    Onnx__Model *model = onnx__model__unpack(NULL, bytes, data);
    cr_assert_not_null(model);
    for (uint32_t i = 0; i <= chance_below(&c, 3); i++)
        damage_onnx(model, &c);
    size_t packed_bytes = onnx__model__get_packed_size(model);
    uint8_t *packed = malloc(packed_bytes + 1);
    onnx__model__pack(model, packed);
    onnx__model__free_unpacked(model, NULL);
    if (getenv("HOSTILE_SAVE") != NULL) { /* the last file written caused the crash */
        FILE *f = fopen(getenv("HOSTILE_SAVE"), "wb");
        fwrite(packed, 1, packed_bytes, f);
        fclose(f);
    }
    status s = run_onnx(packed, packed_bytes);
    cr_assert(s == STATUS_OK || status_message()[0] != 0, MESSAGE_OF_NOTHING);
    cr_assert_neq(s, STATUS_INTERNAL, "%s", status_message());
    free(packed);
}

static long peak_kib(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss;
}

/* Of the files whose names end so. */
static void hurt_folder(const char *folder, const char *ending, uint64_t seed)
{
    long before_kib = peak_kib();
    DIR *d = opendir(folder);
    if (d == NULL)
        cr_skip_test("%s is absent", folder);
    int models = 0;
    for (struct dirent *entry; (entry = readdir(d)) != NULL;) {
        char path[800];
        void *data;
        size_t bytes;
        size_t length = strlen(entry->d_name), end = strlen(ending);
        if (entry->d_name[0] == '.' || length < end ||
            strcmp(entry->d_name + length - end, ending) != 0)
            continue;
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        cr_assert_eq(file_reader_read_whole(path, 1 << 24, &data, &bytes), STATUS_OK);
        for (long i = 1; i <= rounds(); i++)
            hurt(data, bytes, seed + (uint64_t)i);
        free(data);
        models++;
    }
    closedir(d);
    cr_assert_gt(models, 0);
    cr_expect_lt(peak_kib() - before_kib, RESIDENT_KIB_MAX);
}

Test(hostile_onnx, models_of_the_tree)
{
    hurt_folder(PENSTOCK_SOURCE_DIR "/tests/data/golden/models", ".onnx", 1000);
}

/* One for each of many operators, decision trees among them. */
Test(hostile_onnx, seeds_of_the_fuzzer)
{
    hurt_folder(PENSTOCK_SOURCE_DIR "/tests/fuzz/corpus/onnx", "", 7000);
}

Test(hostile_onnx, models_of_the_shared_set)
{
    char folder[600];
    const char *shared = getenv("PENSTOCK_SHARED");
    snprintf(folder, sizeof folder, "%s/models/models",
             shared ? shared : PENSTOCK_SOURCE_DIR "/../shared");
    hurt_folder(folder, ".onnx", 500000);
}
