#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chance.h"
#include "models/manifest/manifest.h"
#include "tests/support/temporary.h"

/* model.json with any value under its keys: accepted, or rejected with the name of the key; never a
 * crash. */

static const char *const keys[] = {
    "precision", "buckets",   "batch_max", "sequence_max", "queue_delay_us", "queue_rows_max",
    "slo_ms",    "priority",  "weight",    "inputs",       "dims",           "labels",
    "pooling",   "can_batch", "can_pad",   "packing",      "program",        "warm_up",
};

static const char *const values[] = {
    "null",
    "true",
    "0",
    "-1",
    "1.5",
    "1e308",
    "9223372036854775807",
    "99999999999999999999",
    "\"\"",
    "\"auto\"",
    "[]",
    "[1]",
    "{}",
    "{\"\": 1}",
    "{\"a\": {\"pad\": \"x\"}}",
    "{\"a\": -1}",
    "{\"batch\": [0]}",
    "{\"batch\": [4, 1]}",
    "{\"batch\": [1, 1]}",
    "{\"sequence\": 5}",
    "{\"batch\": [9223372036854775807], \"sequence\": [9223372036854775807]}",
    "{\"inputs\": [{\"name\": \"x\", \"datatype\": \"FP32\", \"dims\": [-1]}], \"outputs\": []}",
    "{\"inputs\": [{\"name\": \"x\", \"datatype\": \"FP99\", \"dims\": [\"batch\"]}]}",
    "{\"arguments\": [1, 2, 3], \"weights\": \"../../etc/passwd\"}",
};

static char folder[TEMPORARY_FOLDER_BYTES], path[200];

static void begin(void)
{
    temporary_make(folder);
    snprintf(path, sizeof path, "%s/model.json", folder);
}

static status read_text(const char *text)
{
    manifest m;
    temporary_write_text(folder, "model.json", text);
    status s = manifest_read(path, &m);
    if (s == STATUS_OK)
        manifest_dispose(&m);
    return s;
}

Test(hostile_manifest, every_key_is_taken_or_named)
{
    begin();
    for (size_t k = 0; k < sizeof keys / sizeof keys[0]; k++) {
        int rejected = 0;
        for (size_t v = 0; v < sizeof values / sizeof values[0]; v++) {
            char text[400];
            snprintf(text, sizeof text, "{\"%s\": %s}", keys[k], values[v]);
            status s = read_text(text);
            rejected += s != STATUS_OK;
            cr_expect(s == STATUS_OK || strstr(status_message(), "model.json:1") != NULL, "%s: %s",
                      text, status_message());
            cr_expect(s == STATUS_OK || strstr(values[v], "999999999") != NULL ||
                          strstr(status_message(), keys[k]) != NULL,
                      "%s: %s", text, status_message());
        }
        cr_expect_geq(rejected, 10, "%s: rejected %d times only", keys[k], rejected);
    }
    temporary_remove(folder);
}

Test(hostile_manifest, damage_anywhere_does_no_harm)
{
    static const char whole[] =
        "{\"precision\": \"int8\", \"buckets\": {\"batch\": [1, 4], \"sequence\": [16, 64]},\n"
        " \"inputs\": {\"ids\": {\"pad\": 0}, \"mask\": {\"mask\": true}}, \"dims\": {\"h\": "
        "224},\n"
        " \"labels\": {\"stable\": 3}, \"slo_ms\": 20, \"program\": {\"inputs\": [{\"name\": "
        "\"x\",\n"
        " \"datatype\": \"FP32\", \"dims\": [\"batch\", 4]}], \"outputs\": [{\"name\": \"y\",\n"
        " \"datatype\": \"FP32\", \"dims\": [\"batch\", 2]}], \"arguments\": [\"x\"]}}\n";
    begin();
    cr_assert_eq(read_text(whole), STATUS_OK, "%s", status_message());
    for (uint64_t i = 1; i <= 3000; i++) {
        chance c = {i * 104729};
        char text[sizeof whole];
        memcpy(text, whole, sizeof whole);
        for (uint32_t n = 0; n <= chance_below(&c, 4); n++)
            text[chance_below(&c, sizeof whole - 1)] = (char)(1 + chance_below(&c, 255));
        if (chance_below(&c, 4) == 0)
            text[chance_below(&c, sizeof whole)] = 0;
        status s = read_text(text);
        cr_assert(s == STATUS_OK || status_message()[0] != 0);
    }
    char *deep = malloc(200001);
    memset(deep, '[', 200000);
    deep[200000] = 0;
    cr_assert_neq(read_text(deep), STATUS_OK);
    free(deep);
    temporary_remove(folder);
}
