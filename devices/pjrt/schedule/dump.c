#include "devices/pjrt/schedule/dump.h"

#include <ctype.h>
#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/io/file_map.h"
#include "base/text/text_buffer.h"
#include "devices/pjrt/schedule/bundles.h"

/* Files of a dump, by how their names end:
 *   NUMBER-FUNCTION-NUMBER-final_bundles.txt                         the bundles of a function
 *   NUMBER-FUNCTION-NUMBER-final_hlo-static-per-bundle-utilization.txt   how many units there are
 *   NUMBER-TLP-NUMBER-hlo-static-bundle-profile.txt     each function's HLO with its estimate
 *   NUMBER-TLP-NUMBER-deduplication-map.txt             instructions that share one function */
#define BUNDLES "-final_bundles.txt"
#define UNITS "-final_hlo-static-per-bundle-utilization.txt"
#define PROFILE "-hlo-static-bundle-profile.txt"
#define SHARED "-deduplication-map.txt"
#define FILE_BYTES_MAX (1u << 30)
#define MATRIX_UNITS 4 /* where no file tells */

typedef struct function {
    char name[160];
    char path[512];
    bundles *bundles;
    int64_t hbm_bytes; /* of operands and results there */
} function;

typedef struct dump {
    const char *folder;
    function *functions;
    int count, capacity;
    text_buffer profile, shared;
    const char *profile_text, *shared_text; /* of these, when all is read */
    int matrix_units;
} dump;

static bool ends(const char *text, const char *with)
{
    size_t bytes = strlen(text), tail = strlen(with);
    return bytes >= tail && strcmp(text + bytes - tail, with) == 0;
}

status schedule_dump_start(char folder[256])
{
    const char *temporary = getenv("TMPDIR"), *before = getenv("LIBTPU_INIT_ARGS");
    text_buffer flags = {0};
    int n = snprintf(folder, 256, "%s/penstock-schedules-XXXXXX",
                     temporary != NULL && *temporary != 0 ? temporary : "/tmp");
    if (n >= 256 || mkdtemp(folder) == NULL)
        return status_fail(STATUS_IO, "a folder for schedules cannot be made in %s",
                           temporary != NULL ? temporary : "/tmp");
    text_buffer_format(&flags,
                       "%s%s--xla_jf_dump_to=%s --xla_jf_dump_llo_text=true "
                       "--xla_jf_dump_hlo_text=true "
                       "--xla_jf_dump_llo_pass_label_regex=^final_(bundles|hlo)|profile|dedup",
                       before != NULL ? before : "", before != NULL ? " " : "", folder);
    setenv("LIBTPU_INIT_ARGS", text_buffer_string(&flags), 1);
    text_buffer_dispose(&flags);
    return STATUS_OK;
}

void schedule_dump_discard(const char *folder)
{
    DIR *d = opendir(folder);
    char path[512];
    for (struct dirent *e; d != NULL && (e = readdir(d)) != NULL;) {
        int n = snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        if (e->d_name[0] != '.' && n < (int)sizeof path)
            unlink(path);
    }
    if (d != NULL)
        closedir(d);
}

void schedule_dump_end(const char *folder)
{
    schedule_dump_discard(folder);
    rmdir(folder);
}

/* --- what surrounds the bundles --- */

static status read_text(const char *path, text_buffer *out)
{
    file_map map;
    status s = file_map_open(&map, path, FILE_BYTES_MAX);
    if (s)
        return s;
    text_buffer_append(out, map.data != NULL ? map.data : "", map.bytes);
    file_map_close(&map);
    return out->is_broken ? status_fail(STATUS_OUT_OF_MEMORY, "no memory for %s", path) : STATUS_OK;
}

/* Bytes of "bf16[384,1536]". */
static int64_t bytes_of(const char *shape)
{
    static const struct {
        const char *name;
        int bits;
    } kinds[] = {{"bf16[", 16}, {"f16[", 16}, {"s16[", 16}, {"u16[", 16},
                 {"f32[", 32},  {"s32[", 32}, {"u32[", 32}, {"f64[", 64},
                 {"s64[", 64},  {"u64[", 64}, {"s4[", 4},   {"u4[", 4}};
    int64_t bits = 8;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strncmp(shape, kinds[i].name, strlen(kinds[i].name)) == 0)
            bits = kinds[i].bits;
    for (const char *at = strchr(shape, '['); at != NULL && isdigit((unsigned char)at[1]);) {
        char *end;
        bits *= strtoll(at + 1, &end, 10);
        at = *end == ',' ? end : NULL;
    }
    return bits / 8;
}

static int64_t operands_in_hbm(const char *text)
{
    static const char mark[] = "inlined_call_operand.hbm [shape: ";
    int64_t bytes = 0;
    for (const char *at = strstr(text, mark); at != NULL; at = strstr(at, mark)) {
        at += sizeof mark - 1;
        bytes += bytes_of(at);
    }
    return bytes;
}

/* The end of an asynchronous copy that lies in the core's memory: "bf16[4,128]{1,0:T(8,128)S(1)}".
 * 0: it has none, or it is a prefetch for the next execution. */
static int64_t bytes_copied(const char *line, const char *end)
{
    static const char mark[] = "S(1)}";
    const char *at = memmem(line, (size_t)(end - line), mark, sizeof mark - 1);
    if (at == NULL || memmem(line, (size_t)(end - line), "cross_program_prefetch_index", 28))
        return 0;
    while (at > line && *at != '{')
        at--;
    while (at > line && *at != '[')
        at--;
    while (at > line && isalnum((unsigned char)at[-1]))
        at--;
    return bytes_of(at);
}

static int64_t copied_bytes(const char *profile)
{
    int64_t bytes = 0;
    for (const char *at = strstr(profile, "HLO: %"); at != NULL; at = strstr(at + 6, "HLO: %")) {
        const char *end = at + strcspn(at, "\n"), *name = at + 6;
        const char *name_end = name + strcspn(name, " \n");
        bool is_copy = strncmp(name, "copy", 4) == 0 || strncmp(name, "slice", 5) == 0;
        if (is_copy && memmem(name, (size_t)(name_end - name), "start", 5) != NULL)
            bytes += bytes_copied(at, end);
    }
    return bytes;
}

/* Cycles that one instruction keeps its matrix unit busy, a mean over kinds: the most that the
 * bundles could hold says how long each kind takes. `part` is a function's part of the profile. */
static double pace_of(const char *part, const char *end)
{
    double count = 0, shares = 0, all = 0;
    for (const char *line = part; line < end; line += strcspn(line, "\n") + 1) {
        int unit, used = 0;
        char kind[64];
        double x, of;
        (void)sscanf(line, " - VECTOR_EUP: (%lf/%lf)", &x, &all);
        if (sscanf(line, " - MXU_%d %63[^:]: (%lf/%lf)%n", &unit, kind, &x, &of, &used) == 4 &&
            strncmp(kind, "matmul", 6) == 0 && of > 0) {
            count += x;
            shares += x / of;
        }
    }
    return count > 0 ? shares * all / count : 0;
}

/* A function's part of the profile, from its HLO to the next one; false: it has none. */
static bool find_part(const char *profile, const char *name, const char **part, const char **end)
{
    char head[180];
    int n = snprintf(head, sizeof head, "HLO: %%%s ", name);
    const char *at = strstr(profile, head);
    if (at == NULL)
        return false;
    *part = at;
    *end = strstr(at + n, "HLO: ");
    if (*end == NULL)
        *end = at + strlen(at);
    return true;
}

/* How many instructions run the function. */
static int64_t instances_of(const char *shared, const char *name)
{
    char head[180];
    int64_t count = 0;
    size_t bytes = (size_t)snprintf(head, sizeof head, "key:%s\n", name);
    const char *at = strstr(shared, head);
    if (at == NULL)
        return 1;
    for (at += bytes; *at != 0 && strncmp(at, "key:", 4) != 0; at += *at == '\n') {
        count += strncmp(at, "  ", 2) == 0;
        at += strcspn(at, "\n");
    }
    return count > 0 ? count : 1;
}

/* The second line of the file names the units, the third has how many of each there are. */
static int matrix_units_in(const char *path)
{
    text_buffer text = {0};
    char names[512] = "";
    int units = 0;
    if (read_text(path, &text) == STATUS_OK &&
        sscanf(text_buffer_string(&text), "%*[^\n]\n%511[^\n]\n%d", names, &units) == 2 &&
        strncmp(names, "MATMUL,", 7) != 0)
        units = 0;
    text_buffer_dispose(&text);
    return units;
}

/* --- the files --- */

/* "FUNCTION" of "17-FUNCTION-72-final_bundles.txt"; false: of the whole program, or not one. */
static bool name_of(const char *file, char out[160])
{
    const char *from = strchr(file, '-'), *end = strstr(file, BUNDLES);
    if (strstr(file, "schedule-analysis") != NULL || !ends(file, BUNDLES) || from >= end)
        return false;
    while (end > from && end[-1] != '-')
        end--;
    end--;
    from++;
    if (end <= from || end - from >= 160 || *from == '<' || strncmp(from, "TLP-", 4) == 0 ||
        (end - from == 3 && strncmp(from, "TLP", 3) == 0))
        return false;
    snprintf(out, 160, "%.*s", (int)(end - from), from);
    return true;
}

static status add_function(dump *d, const char *path, const char *name)
{
    if (d->count == d->capacity) {
        int wanted = d->capacity > 0 ? 2 * d->capacity : 64;
        function *items = realloc(d->functions, (size_t)wanted * sizeof *items);
        if (items == NULL)
            return status_fail(STATUS_OUT_OF_MEMORY, "no memory for a schedule");
        d->functions = items;
        d->capacity = wanted;
    }
    function *f = &d->functions[d->count];
    *f = (function){0};
    snprintf(f->name, sizeof f->name, "%s", name);
    snprintf(f->path, sizeof f->path, "%s", path);
    text_buffer text = {0};
    status s = read_text(path, &text);
    if (s == STATUS_OK)
        s = bundles_parse(text_buffer_string(&text), text.bytes, &f->bundles);
    if (s == STATUS_OK) {
        f->hbm_bytes = operands_in_hbm(text_buffer_string(&text));
        d->count++;
    }
    text_buffer_dispose(&text);
    return s ? status_prefix(s, "%s", name) : STATUS_OK;
}

static status read_file(dump *d, const char *file)
{
    char path[512], name[160];
    if (snprintf(path, sizeof path, "%s/%s", d->folder, file) >= (int)sizeof path)
        return STATUS_OK; /* not one of these */
    if (name_of(file, name))
        return add_function(d, path, name);
    if (ends(file, UNITS) && d->matrix_units == 0)
        d->matrix_units = matrix_units_in(path);
    if (strstr(file, "-TLP-") != NULL && ends(file, PROFILE))
        return read_text(path, &d->profile);
    if (strstr(file, "-TLP-") != NULL && ends(file, SHARED))
        return read_text(path, &d->shared);
    return STATUS_OK;
}

static status read_files(dump *d)
{
    DIR *folder = opendir(d->folder);
    status s = STATUS_OK;
    for (struct dirent *e; folder != NULL && !s && (e = readdir(folder)) != NULL;)
        s = read_file(d, e->d_name);
    if (folder != NULL)
        closedir(folder);
    return s;
}

/* --- the sum --- */

static int delay_slots(const dump *d)
{
    int counts[BUNDLES_DELAY_MAX + 1] = {0}, best = 0;
    for (int i = 0; i < d->count; i++)
        bundles_count_delays(d->functions[i].bundles, counts);
    for (int i = 1; i <= BUNDLES_DELAY_MAX; i++)
        best = counts[i] >= counts[best] && counts[i] > 0 ? i : best;
    return best;
}

/* Only functions with an estimate: what the two speak of both. */
static status add_cycles(const dump *d, const function *f, int delay, schedule_facts *out)
{
    const char *part, *end;
    if (!find_part(d->profile_text, f->name, &part, &end) ||
        memmem(part, strcspn(part, "\n"), "\"estimated_cycles\":\"", 20) == NULL)
        return STATUS_OK;
    bundles_issued issued;
    status s = bundles_run(f->bundles, delay, &issued);
    if (s)
        return status_prefix(s, "%s", f->name);
    int units = d->matrix_units > 0 ? d->matrix_units : MATRIX_UNITS;
    int64_t busy = (int64_t)((double)issued.products * pace_of(part, end) / units + 0.5);
    int64_t instances = instances_of(d->shared_text, f->name);
    out->cycles += instances * (issued.bundles > busy ? issued.bundles : busy);
    out->hbm_bytes += instances * f->hbm_bytes;
    out->unknown_branches += issued.unknown_branches;
    return STATUS_OK;
}

static status sum(dump *d, schedule_facts *out)
{
    d->profile_text = text_buffer_string(&d->profile);
    d->shared_text = text_buffer_string(&d->shared);
    schedule_facts made = {.hbm_bytes = copied_bytes(d->profile_text)};
    int delay = delay_slots(d);
    for (int i = 0; i < d->count; i++) {
        status s = add_cycles(d, &d->functions[i], delay, &made);
        if (s)
            return s;
    }
    *out = made;
    return made.cycles > 0 ? STATUS_OK
                           : status_fail(STATUS_NOT_FOUND, "the plugin writes no schedules");
}

status schedule_dump_read(const char *folder, schedule_facts *out)
{
    dump d = {.folder = folder};
    status s = read_files(&d);
    if (s == STATUS_OK)
        s = sum(&d, out);
    for (int i = 0; i < d.count; i++)
        bundles_destroy(d.functions[i].bundles);
    free(d.functions);
    text_buffer_dispose(&d.profile);
    text_buffer_dispose(&d.shared);
    schedule_dump_discard(folder);
    return s;
}
