/* A PJRT plugin that injects faults, for tests and game days: it passes every call on to another
 * plugin and fails as the environment says. docs/game-day.md has recipes.
 *
 *   PENSTOCK_FAULT_PLUGIN          path of the plugin that does the work
 *   PENSTOCK_FAULT_EXECUTE_RATE    share of executions that fail, 0 to 1
 *   PENSTOCK_FAULT_EXECUTE_CODE    with this PJRT code (default 13, INTERNAL)
 *   PENSTOCK_FAULT_LOST_AFTER      executions after which all fail with UNAVAILABLE
 *   PENSTOCK_FAULT_HANG_AFTER      ... after which an execution never returns
 *   PENSTOCK_FAULT_CRASH_AFTER     ... after which the process aborts
 *   PENSTOCK_FAULT_EXECUTE_MS      every execution takes so many ms longer
 *   PENSTOCK_FAULT_COMPUTE_MS      every execution takes so many ms of its device's queue
 *   PENSTOCK_FAULT_TRANSFER_MS     with it: every copy to or from it takes so many ms
 *   PENSTOCK_FAULT_TRACE           with it: a file with a line for each execution, in us:
 *                                  "DEVICE BEGIN END"
 *   PENSTOCK_FAULT_TIMES           a file with a line for each call that may last, in us:
 *                                  "KIND BEGIN END"
 *   PENSTOCK_FAULT_DMA             memory can be pinned; a file with a line for each of
 *                                  "map BYTES", "unmap BYTES", "upload pinned" or "copied"
 *   PENSTOCK_FAULT_DMA_FAILS       1: no memory can be pinned, RESOURCE_EXHAUSTED
 *   PENSTOCK_FAULT_ABI             it tells its ABI version: this text
 *   PENSTOCK_FAULT_ABI_REFUSES     1: with it, nothing is compatible until it has compiled
 *   PENSTOCK_FAULT_FINGERPRINT     the number that it tells as fingerprint of its topology
 *   PENSTOCK_FAULT_PROFILE         1: it has a profiler, which records each execution; "libtpu":
 *                                  which gives its own buffer, as libtpu does, and a byte more;
 *                                  "fail": which cannot start
 *   PENSTOCK_FAULT_DEVICES         shows at most so many devices
 *   PENSTOCK_FAULT_COMPILE_MS      every compilation takes so many ms longer
 *   PENSTOCK_FAULT_COMPILE_FAILS   1: every compilation fails, INVALID_ARGUMENT
 *   PENSTOCK_FAULT_LOAD_FAILS      1: no serialised program can be loaded; 2: until it has
 *                                  compiled one
 *   PENSTOCK_FAULT_OUT_OF_MEMORY   1: every buffer fails, RESOURCE_EXHAUSTED
 *   PENSTOCK_FAULT_MEMORY          its devices tell so many bytes of memory
 *   PENSTOCK_FAULT_INITIALIZE      "exit": the process ends; "hang"; "fail"
 *   PENSTOCK_FAULT_CREATE_FAILS    so many openings of the devices fail first
 *   PENSTOCK_FAULT_CREATE_CODE     with this PJRT code (default 14, UNAVAILABLE)
 *   PENSTOCK_FAULT_CREATE_COUNT    a file that counts openings, a byte each, over processes;
 *                                  without it every opening is the first one
 *   PENSTOCK_FAULT_ONCE            a file: the faults of execution happen in the process that
 *                                  creates it, and in no later one
 *   PENSTOCK_FAULT_MAJOR           the major version that it shows
 *   PENSTOCK_FAULT_WITHOUT         a missing function: "execute", "compile", "upload"
 *   PENSTOCK_FAULT_CHATTER         1: prints lines of every log level
 *   PENSTOCK_FAULT_TOPOLOGY        compiles for any target without a device; its chips have this
 *                                  name; the programs are for the inner plugin's device
 *   PENSTOCK_FAULT_KIND            its devices call themselves so
 *   PENSTOCK_FAULT_PLATFORM        and their platform so
 *   PENSTOCK_FAULT_CYCLES          "WORD:N,WORD:N,...": optimized programs tell N estimated cycles,
 *                                  of the first WORD in the text of the program compiled last
 *   PENSTOCK_FAULT_SCHEDULES       "WORD:N,...": such a program has a schedule of N bundles, which
 * is written where libtpu would (schedules.c)
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tests/pjrt/fault.h"

const pjrt_api *fault_inner;
static pjrt_api outer; /* the part of the inner table that we know */
static atomic_ullong executions;
static bool has_execution_faults;

/* --- our own errors --- */

/* Distinguishes them from errors of the inner plugin: their first 8 bytes. */
#define OUR_ERROR UINT64_C(0x70656e73746f636b)

typedef struct fault_error {
    uint64_t mark;
    pjrt_code code;
    char text[120];
} fault_error;

pjrt_error *fault_error_make(pjrt_code code, const char *text)
{
    fault_error *e = calloc(1, sizeof *e);
    e->mark = OUR_ERROR;
    e->code = code;
    snprintf(e->text, sizeof e->text, "%s (ordered by PENSTOCK_FAULT)", text);
    return (pjrt_error *)e;
}

static const fault_error *ours(const pjrt_error *e)
{
    const fault_error *f = (const fault_error *)e;
    return f != NULL && f->mark == OUR_ERROR ? f : NULL;
}

static void error_destroy(pjrt_error_destroy_args *a)
{
    if (ours(a->error) != NULL)
        free(a->error);
    else
        fault_inner->error_destroy(a);
}

static void error_message(pjrt_error_message_args *a)
{
    const fault_error *f = ours(a->error);
    if (f == NULL) {
        fault_inner->error_message(a);
        return;
    }
    a->message = f->text;
    a->message_size = strlen(f->text);
}

static pjrt_error *error_get_code(pjrt_error_get_code_args *a)
{
    const fault_error *f = ours(a->error);
    if (f == NULL)
        return fault_inner->error_get_code(a);
    a->code = f->code;
    return NULL;
}

/* --- orders --- */

const char *fault_order(const char *name)
{
    char full[80];
    snprintf(full, sizeof full, "PENSTOCK_FAULT_%s", name);
    const char *value = getenv(full);
    return value != NULL && *value != 0 ? value : NULL;
}

unsigned long long fault_number(const char *name)
{
    const char *value = fault_order(name);
    return value != NULL ? strtoull(value, NULL, 10) : 0;
}

void fault_tell(const char *name, const char *format, ...)
{
    const char *path = fault_order(name);
    int fd = path != NULL ? open(path, O_CREAT | O_APPEND | O_WRONLY | O_CLOEXEC, 0600) : -1;
    if (fd < 0)
        return;
    char line[200];
    va_list arguments;
    va_start(arguments, format);
    int bytes = vsnprintf(line, sizeof line - 1, format, arguments);
    va_end(arguments);
    line[bytes++] = '\n';
    ssize_t ignored = write(fd, line, (size_t)bytes); /* at once: other threads write, too */
    (void)ignored;
    close(fd);
}

static bool is_ordered(const char *name)
{
    return fault_number(name) != 0;
}

static void wait_ms(unsigned long long ms)
{
    struct timespec t = {.tv_sec = (time_t)(ms / 1000), .tv_nsec = (long)(ms % 1000) * 1000000};
    nanosleep(&t, NULL);
}

/* A rate without randomness: the same run fails at the same executions. */
static bool is_unlucky(unsigned long long n)
{
    const char *rate = fault_order("EXECUTE_RATE");
    double r = rate != NULL ? strtod(rate, NULL) : 0;
    unsigned long long before = (unsigned long long)((double)(n - 1) * r);
    return (unsigned long long)((double)n * r) > before;
}

static pjrt_error *execute(pjrt_execute_args *a)
{
    wait_ms(fault_number("EXECUTE_MS"));
    if (!has_execution_faults)
        return fault_inner->loaded_executable_execute(a);
    unsigned long long n = atomic_fetch_add(&executions, 1) + 1;
    if (is_ordered("CRASH_AFTER") && n > fault_number("CRASH_AFTER"))
        abort();
    if (is_ordered("HANG_AFTER") && n > fault_number("HANG_AFTER"))
        for (;;)
            wait_ms(1000000);
    if (is_ordered("LOST_AFTER") && n > fault_number("LOST_AFTER"))
        return fault_error_make(PJRT_CODE_UNAVAILABLE, "the device is lost");
    if (is_unlucky(n))
        return fault_error_make(fault_order("EXECUTE_CODE")
                                    ? (pjrt_code)fault_number("EXECUTE_CODE")
                                    : PJRT_CODE_INTERNAL,
                                "the execution failed");
    return fault_inner->loaded_executable_execute(a);
}

/* --- estimates --- */

static char cycles_of_last[24]; /* digits; "": none are told */

/* Is `word` within the program? It is no string: MLIR text without a zero byte. */
static bool has_word(const pjrt_program *p, const char *word, size_t bytes)
{
    return bytes == 0 || memmem(p->code, p->code_size, word, bytes) != NULL;
}

static void estimate(const pjrt_program *p)
{
    cycles_of_last[0] = 0;
    const char *at = fault_order("CYCLES");
    while (at != NULL && *at != 0) {
        size_t word = strcspn(at, ":"), rest = strcspn(at, ",");
        if (word < rest && has_word(p, at, word)) {
            snprintf(cycles_of_last, sizeof cycles_of_last, "%.*s", (int)(rest - word - 1),
                     at + word + 1);
            return;
        }
        at += rest + (at[rest] == ',');
    }
}

/* One more computation of an HloModuleProto, with an instruction that has the estimate. */
static size_t make_computation(unsigned char out[100])
{
    char config[60];
    int n = snprintf(config, sizeof config, "{\"estimated_cycles\":\"%s\"}", cycles_of_last);
    const unsigned char head[] = {0x1a, (unsigned char)(n + 5), 0x12, (unsigned char)(n + 3), 0xda,
                                  0x02, (unsigned char)n};
    memcpy(out, head, sizeof head);
    memcpy(out + sizeof head, config, (size_t)n);
    return sizeof head + (size_t)n;
}

/* `p` with the computation, in static memory that the next call reuses. The program may be bare, or
 * wrapped with its config: field 1, whose length then grows. */
static void add_estimate(pjrt_program *p)
{
    static char *made;
    unsigned char computation[100];
    const unsigned char *from = (const unsigned char *)p->code;
    size_t added = make_computation(computation), size = 0, at = 1;
    for (int shift = 0; at < p->code_size; shift += 7) {
        size |= (size_t)(from[at] & 127) << shift;
        if (from[at++] < 128)
            break;
    }
    bool is_wrapped = from[0] == 0x0a && size > 1000;
    size_t end = is_wrapped ? at + size : p->code_size;
    free(made);
    made = malloc(p->code_size + added + 16);
    size_t n = 0;
    if (is_wrapped) {
        made[n++] = 0x0a;
        for (size += added; size >= 128; size >>= 7)
            made[n++] = (char)(size | 128);
        made[n++] = (char)size;
    }
    size_t start = is_wrapped ? at : 0;
    memcpy(made + n, from + start, end - start);
    n += end - start;
    memcpy(made + n, computation, added);
    n += added;
    memcpy(made + n, from + end, p->code_size - end);
    p->code = made;
    p->code_size = n + p->code_size - end;
}

/* The caller asks for the size first, then for the bytes. */
static pjrt_error *optimized_program(pjrt_executable_optimized_program_args *a)
{
    if (cycles_of_last[0] == 0)
        return fault_inner->executable_optimized_program(a);
    pjrt_program whole = {.struct_size = sizeof whole};
    pjrt_executable_optimized_program_args get = *a;
    get.program = &whole;
    pjrt_error *failure = fault_inner->executable_optimized_program(&get);
    if (failure != NULL)
        return failure;
    whole.code = malloc(whole.code_size + 1);
    failure = fault_inner->executable_optimized_program(&get);
    char *own = whole.code;
    if (failure == NULL) {
        add_estimate(&whole);
        if (a->program->code != NULL)
            memcpy(a->program->code, whole.code, whole.code_size);
        a->program->code_size = whole.code_size;
        a->program->format = whole.format;
        a->program->format_size = whole.format_size;
    }
    free(own);
    return failure;
}

static atomic_bool has_compiled;

static pjrt_error *compile(pjrt_client_compile_args *a)
{
    has_compiled = true;
    estimate(a->program);
    wait_ms(fault_number("COMPILE_MS"));
    if (is_ordered("COMPILE_FAILS"))
        return fault_error_make(PJRT_CODE_INVALID_ARGUMENT, "the program does not compile");
    return fault_inner->client_compile(a);
}

/* --- a target without a device --- */

static pjrt_client *compiling_client;    /* of the inner plugin; opened once, never closed */
static pjrt_loaded_executable *compiled; /* what the last executable made here refers to */

/* Stand for the only topology and its only chip: nobody looks inside. */
static char the_topology, the_chip;

static pjrt_error *topology_create(pjrt_topology_create_args *a)
{
    pjrt_client_create_args open = {.struct_size = sizeof open};
    if (compiling_client == NULL) {
        pjrt_error *failure = fault_inner->client_create(&open);
        if (failure != NULL)
            return failure;
        compiling_client = open.client;
    }
    a->topology = (pjrt_topology *)&the_topology;
    return NULL;
}

static pjrt_error *topology_destroy(pjrt_topology_args *a)
{
    (void)a;
    return NULL;
}

static pjrt_error *topology_descriptions(pjrt_topology_descriptions_args *a)
{
    static pjrt_device_description *const chips[] = {(pjrt_device_description *)&the_chip};
    a->descriptions = chips;
    a->num_descriptions = 1;
    return NULL;
}

static pjrt_error *description_kind(pjrt_device_description_kind_args *a)
{
    bool is_chip = a->device_description == (pjrt_device_description *)&the_chip;
    if (!is_chip && fault_order("KIND") == NULL)
        return fault_inner->device_description_kind(a);
    a->kind = is_chip ? fault_order("TOPOLOGY") : fault_order("KIND");
    a->kind_size = strlen(a->kind);
    return NULL;
}

static pjrt_error *compile_ahead(pjrt_compile_args *a)
{
    pjrt_client_compile_args compile_now = {.struct_size = sizeof compile_now,
                                            .client = compiling_client,
                                            .program = a->program,
                                            .compile_options = a->compile_options,
                                            .compile_options_size = a->compile_options_size};
    pjrt_error *failure = compile(&compile_now);
    if (failure != NULL)
        return failure;
    pjrt_loaded_executable_get_executable_args get = {.struct_size = sizeof get,
                                                      .loaded_executable = compile_now.executable};
    failure = fault_inner->loaded_executable_get_executable(&get);
    a->executable = get.executable;
    compiled = compile_now.executable;
    return failure;
}

static pjrt_error *executable_destroy(pjrt_executable_args *a)
{
    pjrt_error *failure = fault_inner->executable_destroy(a);
    pjrt_loaded_executable_args release = {.struct_size = sizeof release, .executable = compiled};
    compiled = NULL;
    return failure == NULL && release.executable != NULL
               ? fault_inner->loaded_executable_destroy(&release)
               : failure;
}

static void offer_topologies(void)
{
    outer.topology_create = topology_create;
    outer.topology_destroy = topology_destroy;
    outer.topology_get_device_descriptions = topology_descriptions;
    outer.compile = compile_ahead;
    outer.executable_destroy = executable_destroy;
}

/* --- devices --- */

static pjrt_error *list_devices(pjrt_client_addressable_devices_args *a)
{
    pjrt_error *failure = fault_inner->client_addressable_devices(a);
    if (failure == NULL && is_ordered("DEVICES") && a->num_devices > fault_number("DEVICES"))
        a->num_devices = (size_t)fault_number("DEVICES");
    return failure;
}

static pjrt_error *load(pjrt_executable_deserialize_args *a)
{
    if (is_ordered("LOAD_FAILS") && !(fault_number("LOAD_FAILS") == 2 && has_compiled))
        return fault_error_make(PJRT_CODE_INVALID_ARGUMENT, "the program cannot be loaded");
    return fault_inner->executable_deserialize_and_load(a);
}

static pjrt_error *upload(pjrt_client_buffer_from_host_args *a)
{
    if (is_ordered("OUT_OF_MEMORY"))
        return fault_error_make(PJRT_CODE_RESOURCE_EXHAUSTED, "the device is out of memory");
    return fault_inner->client_buffer_from_host(a);
}

static pjrt_error *memory_stats(pjrt_device_memory_stats_args *a)
{
    a->bytes_in_use = 0;
    a->bytes_limit = (int64_t)fault_number("MEMORY");
    a->bytes_limit_is_set = true;
    return NULL;
}

/* Which opening of the devices this is, over all processes; from 1. */
static unsigned long long count_opening(void)
{
    const char *path = fault_order("CREATE_COUNT");
    int fd = path != NULL ? open(path, O_CREAT | O_APPEND | O_WRONLY | O_CLOEXEC, 0600) : -1;
    if (fd < 0)
        return 1;
    ssize_t written = write(fd, ".", 1);
    off_t bytes = lseek(fd, 0, SEEK_END);
    close(fd);
    return written == 1 ? (unsigned long long)bytes : 1;
}

static pjrt_error *create(pjrt_client_create_args *a)
{
    if (is_ordered("CREATE_FAILS") && count_opening() <= fault_number("CREATE_FAILS"))
        return fault_error_make(fault_order("CREATE_CODE") ? (pjrt_code)fault_number("CREATE_CODE")
                                                           : PJRT_CODE_UNAVAILABLE,
                                "the device is already in use");
    return fault_inner->client_create(a);
}

static pjrt_error *initialize(pjrt_plugin_initialize_args *a)
{
    const char *what = fault_order("INITIALIZE");
    if (what != NULL && strcmp(what, "exit") == 0) {
        fprintf(stderr, "E0101 00:00:00.000000 1 fault.cc:1] ordered to exit in initialise\n");
        exit(1);
    }
    if (what != NULL && strcmp(what, "hang") == 0)
        for (;;)
            wait_ms(1000000);
    if (what != NULL)
        return fault_error_make(PJRT_CODE_FAILED_PRECONDITION, "the plugin does not initialise");
    if (is_ordered("CHATTER"))
        fprintf(stderr, "I0101 00:00:00.000000 1 chatter.cc:1] of no interest\n"
                        "W0101 00:00:00.000000 1 chatter.cc:2] of little interest\n"
                        "E0101 00:00:00.000000 1 chatter.cc:3] of some interest\n");
    return fault_inner->plugin_initialize(a);
}

static void choose_execution_faults(void)
{
    const char *once = fault_order("ONCE");
    has_execution_faults = true;
    if (once == NULL)
        return;
    int fd = open(once, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
    has_execution_faults = fd >= 0;
    if (fd >= 0)
        close(fd);
}

__attribute__((visibility("default"))) const pjrt_api *GetPjrtApi(void);

const pjrt_api *GetPjrtApi(void)
{
    const char *path = fault_order("PLUGIN");
    void *library = path != NULL ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
    if (library == NULL) {
        fprintf(stderr, "PENSTOCK_FAULT_PLUGIN: %s\n", path ? dlerror() : "is not set");
        return NULL;
    }
    pjrt_get_api_fn get = NULL;
    *(void **)&get = dlsym(library, PJRT_GET_API_SYMBOL);
    fault_inner = get != NULL ? get() : NULL;
    if (fault_inner == NULL)
        return NULL;
    choose_execution_faults();
    size_t bytes =
        fault_inner->struct_size < sizeof outer ? fault_inner->struct_size : sizeof outer;
    memcpy(&outer, fault_inner, bytes);
    outer.struct_size = bytes;
    outer.error_destroy = error_destroy;
    outer.error_message = error_message;
    outer.error_get_code = error_get_code;
    outer.plugin_initialize = initialize;
    outer.client_create = create;
    outer.client_addressable_devices = list_devices;
    outer.client_compile = compile;
    outer.client_buffer_from_host = upload;
    outer.loaded_executable_execute = execute;
    if (fault_order("MEMORY") != NULL)
        outer.device_memory_stats = memory_stats;
    if (fault_order("CYCLES") != NULL)
        outer.executable_optimized_program = optimized_program;
    outer.executable_deserialize_and_load = load;
    if (fault_order("TOPOLOGY") != NULL || fault_order("KIND") != NULL)
        outer.device_description_kind = description_kind;
    if (fault_order("TOPOLOGY") != NULL)
        offer_topologies();
    fault_simulate(&outer);
    fault_extend(&outer);
    fault_schedule(&outer);
    fault_time(&outer);
    fault_profile(&outer);
    if (fault_order("MAJOR") != NULL)
        outer.version.major_version = (int)fault_number("MAJOR");
    const char *without = fault_order("WITHOUT");
    if (without != NULL && strcmp(without, "execute") == 0)
        outer.loaded_executable_execute = NULL;
    if (without != NULL && strcmp(without, "compile") == 0)
        outer.client_compile = NULL;
    if (without != NULL && strcmp(without, "upload") == 0)
        outer.client_buffer_from_host = NULL;
    return &outer;
}
