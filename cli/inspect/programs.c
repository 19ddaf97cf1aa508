#include "cli/inspect/programs.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/inspect/choice_json.h"
#include "devices/compile_cache.h"
#include "server/protocol/text/text_write.h"

/* Entries of choices hold text only. */
#define CHOICE_ENTRY_BYTES_MAX 16384

/* What an entry says besides the choice. */
typedef struct choice_head {
    char device[160], precision[16], arithmetic[32], scales[16];
    unsigned long long model_key;
    long long batch, sequence;
    int packed;
} choice_head;

typedef struct listing {
    const model *m;
    bool is_json;
    int count;
    text_buffer *out;
} listing;

static bool read_head(const char *summary, choice_head *out)
{
    *out = (choice_head){0};
    if (strncmp(summary, "choice_of ", 10) != 0)
        return false;
    for (const char *line = summary; *line != 0; line += strcspn(line, "\n"), line += *line == 10) {
        (void)sscanf(line, "device %159[^\n]", out->device);
        (void)sscanf(line, "precision %15s", out->precision);
        (void)sscanf(line, "arithmetic %31[^\n]", out->arithmetic);
        (void)sscanf(line, "scales %15s", out->scales);
        (void)sscanf(line, "model_key %llx", &out->model_key);
        (void)sscanf(line, "batch %lld", &out->batch);
        (void)sscanf(line, "sequence %lld", &out->sequence);
        (void)sscanf(line, "packed %d", &out->packed);
    }
    return true;
}

static void put_json(listing *l, const choice_head *h, const pjrt_choice *c)
{
    text_buffer_put(l->out, l->count > 0 ? ",{\"device\":" : "{\"device\":");
    text_write_json_text(l->out, h->device);
    text_buffer_format(l->out,
                       ",\"precision\":\"%s\",\"batch\":%lld,\"sequence\":%lld,\"packed\":%s,"
                       "\"arithmetic\":\"%s\",\"scales\":\"%s\",",
                       h->precision, h->batch, h->sequence, h->packed ? "true" : "false",
                       h->arithmetic, h->scales);
    choice_json_put(c, c->trials[c->chosen].name, l->out);
    text_buffer_put(l->out, "}");
}

/* "TPU v5 lite  int8   32 x 128  int8, scales static: the fewest estimated cycles: int8 900, ..."
 */
static void put_line(listing *l, const choice_head *h, const pjrt_choice *c)
{
    char trial[120], reason[300];
    text_buffer_format(l->out, "  %s, %s, %lld x %lld%s: %s, scales %s: %s: ", h->device,
                       h->precision, h->batch, h->sequence, h->packed ? " packed" : "",
                       h->arithmetic, h->scales, pjrt_choice_explain(c, reason));
    for (int i = 0; i < c->count; i++)
        text_buffer_format(l->out, "%s%s %s", i > 0 ? ", " : "", c->trials[i].name,
                           pjrt_trial_describe(&c->trials[i], trial));
    text_buffer_put(l->out, "\n");
}

static void visit(void *context, const char *summary)
{
    listing *l = context;
    choice_head h;
    pjrt_choice c;
    if (!read_head(summary, &h) || h.model_key != l->m->on_device.model_key ||
        pjrt_choice_read(summary, &c))
        return;
    if (l->is_json)
        put_json(l, &h, &c);
    else
        put_line(l, &h, &c);
    l->count++;
}

status inspect_programs(const model *m, const char *cache, bool is_json, text_buffer *out)
{
    listing l = {.m = m, .is_json = is_json, .out = out};
    compile_cache *opened;
    if (access(cache, R_OK) != 0) /* opening it would make it */
        return status_fail(STATUS_IO, "--cache: %s: %m", cache);
    status s = compile_cache_open(cache, &opened);
    if (s)
        return s;
    text_buffer_put(out, is_json ? "[" : "programs  chosen, in the compile cache:\n");
    s = compile_cache_visit(opened, CHOICE_ENTRY_BYTES_MAX, visit, &l);
    compile_cache_close(opened);
    if (is_json)
        text_buffer_put(out, "]");
    else if (l.count == 0)
        text_buffer_put(out, "  none\n");
    return s;
}
