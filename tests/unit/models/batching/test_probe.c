#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "models/repository/repository.h"

static void expect(const char *file, bool can_batch, bool can_pad, int64_t sequence_max)
{
    char onnx[4096];
    const char *shared = getenv("PENSTOCK_SHARED");
    snprintf(onnx, sizeof onnx, "%s/models/models/%s", shared ? shared : "../shared", file);
    if (access(onnx, R_OK) != 0)
        cr_skip_test("%s is absent", onnx);
    device *cpu;
    cr_assert_eq(device_cpu_create(1, NULL, &cpu), STATUS_OK);
    repository_model_options own = {.name = "m", .path = onnx};
    repository_options options = {
        .models = &own, .model_count = 1, .load = {.batch_max = 2, .sequence_max = 40}};
    repository *r;
    const model *m;
    device *devices[] = {cpu};
    cr_assert_eq(repository_create(&options, devices, 1, &r), STATUS_OK);
    cr_assert_eq(repository_wait(r), STATUS_OK, "%s: %s", file, status_message());
    cr_assert_eq(repository_find(r, "m", 1, 0, &m), STATUS_OK);
    cr_expect_eq(m->batching.can_batch, can_batch, "%s: %s", file, m->batching_note);
    cr_expect_eq(m->batching.can_pad, can_pad, "%s: %s", file, m->batching_note);
    cr_expect_eq(m->batching.sequence_max, sequence_max, "%s", file);
    model_release(m);
    repository_destroy(r);
    cpu->interface->destroy(cpu);
}

Test(probe, says_how_real_models_may_be_batched)
{
    expect("bert_tiny_legacy.onnx", true, true, 40);
    expect("bert_tiny_dynamo.onnx", true, true, 40);
    expect("bert_tiny_cls_legacy.onnx", true, true, 40);
    expect("distilbert_tiny_legacy.onnx", true, true, 40);
    expect("roberta_tiny_legacy.onnx", true, true, 40);
    /* Its activations share one scale over the batch. */
    expect("bert_tiny_int8_dynamic.onnx", false, false, 40);
    expect("resnet_tiny.onnx", true, false, 0);
    expect("cnn_3x32x32_dynamo.onnx", true, false, 0);
}
