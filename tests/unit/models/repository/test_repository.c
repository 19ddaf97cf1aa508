#include <criterion/criterion.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "models/repository/internal.h"
#include "models/repository/repository.h"
#include "models/repository/snapshot.h"
#include "tests/support/temporary.h"

static const char *shared_model(const char *name, char path[4096])
{
    const char *shared = getenv("PENSTOCK_SHARED");
    snprintf(path, 4096, "%s/models/models/%s", shared ? shared : "../shared", name);
    if (access(path, R_OK) != 0)
        cr_skip_test("%s is absent", path);
    return path;
}

/* A folder <root>/<name>/<version>/model.onnx made of links. */
static void put(const char *root, const char *name, int version, const char *onnx)
{
    char path[8192], full[4096];
    if (realpath(onnx, full) == NULL)
        cr_assert_fail("%s", onnx);
    snprintf(path, sizeof path, "mkdir -p %s/%s/%d && ln -sfn %s %s/%s/%d/model.onnx", root, name,
             version, full, root, name, version);
    cr_assert_eq(system(path), 0);
}

static device *cpu;
static char root[TEMPORARY_FOLDER_BYTES];

static void begin(void)
{
    cr_assert_eq(device_cpu_create(1, NULL, &cpu), STATUS_OK);
    temporary_make(root);
}

static void end(void)
{
    temporary_remove(root);
    cpu->interface->destroy(cpu);
}

typedef struct answer {
    repository_order order; /* first */
    _Atomic bool is_there;
    status result;
} answer;

static void on_done(repository_order *o, status result, const char *error)
{
    answer *a = (answer *)o;
    (void)error;
    a->result = result;
    atomic_store(&a->is_there, true);
}

static status await(answer *a)
{
    while (!atomic_load(&a->is_there))
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    atomic_store(&a->is_there, false);
    return a->result;
}

static status load(repository *r, const char *name)
{
    answer a = {.order.on_done = on_done};
    status failure = repository_load(r, name, &a.order);
    return failure ? failure : await(&a);
}

static status unload(repository *r, const char *name)
{
    answer a = {.order.on_done = on_done};
    status failure = repository_unload(r, name, &a.order);
    return failure ? failure : await(&a);
}

/* Proxies try 503 on another replica, and give the client a 404. */
Test(repository, before_its_folder_is_read_no_model_is_unknown)
{
    static repository unread;
    const model *m;
    cr_assert(repository_is_starting(&unread));
    cr_assert_eq(repository_find(&unread, "digits", 6, 0, &m), STATUS_UNAVAILABLE);
    cr_assert_eq(repository_find_label(&unread, "digits", 6, "stable", 6, &m), STATUS_UNAVAILABLE);
    begin();
    char path[256];
    snprintf(path, sizeof path, "%s/digits", root);
    mkdir(path, 0777);
    repository_options options = {.folder = root};
    repository *r;
    device *devices[] = {cpu};
    cr_assert_eq(repository_create(&options, devices, 1, &r), STATUS_OK);
    repository_wait_names(r);
    cr_assert_eq(repository_list(r, NULL, 0), 1);
    cr_assert_eq(repository_find(r, "digits", 6, 0, &m), STATUS_UNAVAILABLE);
    cr_assert_eq(repository_find(r, "other", 5, 0, &m), STATUS_NOT_FOUND);
    cr_assert_eq(repository_wait(r), STATUS_NOT_FOUND, "it is empty");
    cr_assert_not(repository_is_starting(r));
    repository_destroy(r);
    end();
}

Test(repository, versions_labels_failures_reload_and_unload)
{
    char onnx[4096];
    shared_model("digits_mlp.onnx", onnx);
    begin();
    put(root, "digits", 1, onnx);
    put(root, "digits", 3, onnx);
    char path[256];
    snprintf(path, sizeof path, "%s/digits/model.json", root);
    FILE *f = fopen(path, "w");
    fputs("{\"labels\": {\"stable\": 1}, \"batch_max\": 4}", f);
    fclose(f);
    snprintf(path, sizeof path, "%s/empty", root);
    mkdir(path, 0777);
    repository_options options = {.folder = root};
    repository *r;
    device *devices[] = {cpu};
    cr_assert_eq(repository_create(&options, devices, 1, &r), STATUS_OK);
    cr_assert_eq(repository_wait(r), STATUS_NOT_FOUND, "the empty one failed");
    char progress[300];
    cr_assert_not(repository_is_ready(r, progress, sizeof progress));
    cr_assert(strstr(progress, "empty"), "%s", progress);

    const model *m, *old;
    cr_assert_eq(repository_find(r, "digits", 6, 0, &m), STATUS_OK, "%s", status_message());
    cr_assert_eq(m->version, 3);
    cr_assert_eq(m->batching.batch_max, 4);
    cr_assert(m->batching.can_batch);
    cr_assert_eq(m->bucket_count, 3);
    cr_assert_eq(repository_find_label(r, "digits", 6, "stable", 6, &old), STATUS_OK);
    cr_assert_eq(old->version, 1);
    model_release(old);
    cr_assert_eq(repository_find_label(r, "digits", 6, "canary", 6, &old), STATUS_NOT_FOUND);
    cr_assert_eq(repository_find(r, "digits", 6, 2, &old), STATUS_NOT_FOUND);
    cr_assert_eq(repository_find(r, "digit", 5, 0, &old), STATUS_NOT_FOUND);
    cr_assert_eq(repository_find(r, "empty", 5, 0, &old), STATUS_UNAVAILABLE);
    cr_assert_eq(repository_list(r, NULL, 0), 3);

    /* A reload while somebody holds the old one. */
    cr_assert_eq(load(r, "digits"), STATUS_OK);
    cr_assert_eq(repository_find(r, "digits", 6, 3, &old), STATUS_OK);
    cr_assert_neq(old, m);
    model_release(old);
    cr_assert_eq(m->version, 3, "still alive");
    model_release(m);
    cr_assert_eq(unload(r, "digits"), STATUS_OK);
    cr_assert_eq(repository_find(r, "digits", 6, 0, &m), STATUS_UNAVAILABLE);
    cr_assert_eq(load(r, "digits"), STATUS_OK);
    cr_assert_eq(repository_find(r, "digits", 6, 0, &m), STATUS_OK);
    model_release(m);
    cr_assert_eq(load(r, "../digits"), STATUS_NOT_FOUND);
    repository_destroy(r);
    end();
}

/* What is under way ends at its next step, and nothing else begins. */
Test(repository, stops_while_it_loads)
{
    char onnx[4096], progress[300];
    shared_model("digits_mlp.onnx", onnx);
    begin();
    put(root, "a", 1, onnx);
    put(root, "b", 1, onnx);
    repository_options options = {.folder = root};
    repository *r;
    device *devices[] = {cpu};
    cr_assert_eq(repository_create(&options, devices, 1, &r), STATUS_OK);
    repository_stop(r);
    status end_status = repository_wait(r);
    cr_assert(end_status == STATUS_CANCELLED || end_status == STATUS_OK, "%s", status_message());
    cr_assert_eq(repository_is_ready(r, progress, sizeof progress), end_status == STATUS_OK);
    cr_assert_eq(load(r, "a"), STATUS_UNAVAILABLE);
    repository_destroy(r);
    end();
}

Test(repository, a_load_has_a_time_limit)
{
    char onnx[4096];
    shared_model("digits_mlp.onnx", onnx);
    begin();
    put(root, "digits", 1, onnx);
    repository_options options = {.folder = root, .load_limit_ns = 1};
    repository *r;
    device *devices[] = {cpu};
    cr_assert_eq(repository_create(&options, devices, 1, &r), STATUS_OK);
    cr_assert_eq(repository_wait(r), STATUS_DEADLINE_EXCEEDED);
    cr_assert(strstr(status_message(), "\"digits\" version 1"), "%s", status_message());
    cr_assert_eq(repository_loads(r, REPOSITORY_LOAD_TIME_LIMIT), 1);
    repository_destroy(r);
    end();
}

typedef struct finder {
    repository *repository;
    _Atomic bool stop;
    _Atomic int64_t found;
    int64_t missed;
} finder;

static void *find_model_often(void *pointer)
{
    finder *l = pointer;
    while (!atomic_load(&l->stop)) {
        const model *m;
        if (repository_find(l->repository, "digits", 6, 0, &m) == STATUS_OK) {
            l->found += m->input_count == 1;
            model_release(m);
        } else {
            l->missed++;
        }
    }
    return NULL;
}

/* Folders that hold a model in a form that is not read, and what is said of them. */
Test(repository, folders_without_a_model_get_advice)
{
    static const struct {
        const char *make, *word;
    } cases[] = {
        {"echo '{\"model_type\": \"bert\", \"hidden_size\": 8, \"num_hidden_layers\": 1, "
         "\"num_attention_heads\": 1}' > %s/m/config.json; touch %s/m/pytorch_model.bin",
         "safe_serialization"},
        {"touch %s/m/a.onnx %s/m/b.onnx", "several .onnx files"},
        {"mkdir %s/m/onnx; touch %s/m/onnx/model_quantized.onnx", "its folder onnx"},
        {"touch %s/m/config.json; touch %s/m/vocab.txt", "without model.safetensors"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char command[500], path[100];
        begin();
        snprintf(path, sizeof path, "%s/m", root);
        mkdir(path, 0777);
        snprintf(command, sizeof command, cases[i].make, root, root);
        cr_assert_eq(system(command), 0);
        repository_options options = {.folder = root};
        repository *r;
        device *devices[] = {cpu};
        cr_assert_eq(repository_create(&options, devices, 1, &r), STATUS_OK);
        cr_assert_neq(repository_wait(r), STATUS_OK);
        cr_assert(strstr(status_message(), cases[i].word), "%s", status_message());
        repository_destroy(r);
        end();
    }
}

Test(repository, lookups_never_miss_while_it_reloads)
{
    char onnx[4096];
    shared_model("digits_mlp.onnx", onnx);
    begin();
    repository_model_options own = {.name = "digits", .path = onnx};
    repository_options options = {.models = &own, .model_count = 1, .load = {.batch_max = 2}};
    repository *r;
    device *devices[] = {cpu};
    cr_assert_eq(repository_create(&options, devices, 1, &r), STATUS_OK);
    cr_assert_eq(repository_wait(r), STATUS_OK, "%s", status_message());
    cr_assert(repository_is_ready(r, NULL, 0));
    finder l = {.repository = r};
    pthread_t thread;
    pthread_create(&thread, NULL, find_model_often, &l);
    for (int i = 0; i < 20; i++) {
        int64_t before = atomic_load(&l.found);
        cr_assert_eq(load(r, "digits"), STATUS_OK);
        while (atomic_load(&l.found) == before) /* on a busy machine it may not have run */
            sched_yield();
    }
    atomic_store(&l.stop, true);
    pthread_join(thread, NULL);
    cr_assert_eq(l.missed, 0);
    cr_assert_gt(l.found, 0);
    repository_destroy(r);
    end();
}
