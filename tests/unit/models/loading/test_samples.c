#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "models/loading/samples.h"
#include "models/planner.h"
#include "models/repository/repository.h"
#include "tests/support/temporary.h"

static char folder[TEMPORARY_FOLDER_BYTES];

static status read_lines(const char *text, arena *memory, device_samples *out)
{
    char path[200];
    temporary_write_text(folder, "samples", text);
    snprintf(path, sizeof path, "%s/samples", folder);
    return samples_read(path, memory, out);
}

static void begin(void)
{
    temporary_make(folder);
}

static void end(void)
{
    temporary_remove(folder);
}

Test(samples, arrays_are_read_and_lengths_left_alone)
{
    begin();
    arena memory = {0};
    device_samples s, other;
    cr_assert_eq(read_lines("# text\n12\n [7, 8,9]\n\n[5]\n", &memory, &s), STATUS_OK);
    cr_assert_eq(s.count, 2);
    cr_assert_eq(s.samples[0].length, 3);
    cr_assert_eq(s.samples[0].ids[2], 9);
    cr_assert_eq(s.samples[1].length, 1);
    cr_assert_eq(s.samples[1].line, 5);
    cr_assert_eq(read_lines("[7, 8]\n[9, 5]\n", &memory, &other), STATUS_OK);
    cr_assert_neq(s.hash, other.hash, "sequences are told apart, not only their ids");
    char many[4000] = "";
    for (int i = 0; i < 100; i++)
        snprintf(many + strlen(many), 20, "[%d]\n", i);
    cr_assert_eq(read_lines(many, &memory, &s), STATUS_OK);
    cr_assert_eq(s.count, SAMPLES_MAX);
    cr_assert_gt(s.samples[SAMPLES_MAX - 1].ids[0], 90, "they are spread over the file");

    length_histogram *h;
    char path[200];
    temporary_write_text(folder, "lengths", "4\n[1, 2, 3]\n[ 9 ]\n");
    snprintf(path, sizeof path, "%s/lengths", folder);
    cr_assert_eq(length_histogram_read(path, &h), STATUS_OK, "%s", status_message());
    cr_assert_eq(h->counts[4], 1);
    cr_assert_eq(h->counts[3], 1);
    cr_assert_eq(h->counts[1], 1);
    free(h);
    temporary_write_text(folder, "lengths", "[]\n");
    cr_assert_eq(length_histogram_read(path, &h), STATUS_INVALID_ARGUMENT);
    arena_dispose(&memory);
    end();
}

Test(samples, what_is_wrong_is_named_by_line)
{
    static const char *const wrong[] = {"3\n[1, -2]\n", "3\n[1, 2.5]\n", "3\n[1, \"a\"]\n",
                                        "3\n[]\n", "3\n[1, 2\n"};
    begin();
    arena memory = {0};
    device_samples s;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        cr_assert_eq(read_lines(wrong[i], &memory, &s), STATUS_INVALID_ARGUMENT, "%s", wrong[i]);
        cr_assert(strstr(status_message(), "samples:2:"), "%s", status_message());
    }
    cr_assert_eq(samples_read("/nowhere", &memory, &s), STATUS_NOT_FOUND);
    arena_dispose(&memory);
    end();
}

/* The model's batching note, or the message of its failure. */
static status judge(device *cpu, const char *lines, char text[4096])
{
    char path[200];
    snprintf(path, sizeof path, "%s/model", folder);
    temporary_write_text(folder, "model/warm.jsonl", lines);
    repository_model_options one = {.name = "m", .path = path};
    repository_options options = {
        .models = &one, .model_count = 1, .load = {.precision = DEVICE_INT8, .sequence_max = 32}};
    repository *r;
    const model *m;
    cr_assert_eq(repository_create(&options, &cpu, 1, &r), STATUS_OK);
    status s = repository_wait(r);
    snprintf(text, 4096, "%s", s ? status_message() : "");
    if (!s && !(s = repository_find(r, "m", 1, 0, &m))) {
        snprintf(text, 4096, "%s", m->batching_note);
        model_release(m);
    }
    repository_destroy(r);
    return s;
}

Test(samples, the_accuracy_check_uses_them)
{
    char onnx[4096], command[9000], text[4096];
    const char *shared = getenv("PENSTOCK_SHARED");
    snprintf(onnx, sizeof onnx, "%s/models/models/bert_tiny_legacy.onnx",
             shared ? shared : "../shared");
    if (access(onnx, R_OK) != 0)
        cr_skip_test("%s is absent", onnx);
    begin();
    snprintf(command, sizeof command,
             "mkdir -p %s/model/1 && ln -s $(realpath %s) %s/model/1/model.onnx", folder, onnx,
             folder);
    cr_assert_eq(system(command), 0);
    temporary_write_text(folder, "model/model.json", "{\"warm_up\": \"warm.jsonl\"}");
    device *cpu;
    cr_assert_eq(device_cpu_create(1, NULL, &cpu), STATUS_OK);
    cr_assert_eq(judge(cpu, "[5, 6, 7]\n[9, 10]\n", text), STATUS_OK, "%s", text);
    cr_assert(strstr(text, "over 2 warm-up sequences"), "%s", text);
    cr_assert(strstr(text, "at least 0.997 and 0.99)"), "%s", text);
    cr_assert_eq(judge(cpu, "7\n12\n", text), STATUS_OK, "%s", text);
    cr_assert(strstr(text, "generated sequences"), "%s", text);
    cr_assert_neq(judge(cpu, "[5]\n[5, 123456789]\n", text), STATUS_OK);
    cr_assert(strstr(text, "warm_up, line 2: token id 123456789"), "%s", text);
    cpu->interface->destroy(cpu);
    end();
}
