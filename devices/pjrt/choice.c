#include "devices/pjrt/choice.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

static void add(pjrt_candidate *list, int *count, const char *name, stablehlo_options options)
{
    assert(*count < PJRT_CANDIDATES_MAX);
    pjrt_candidate *c = &list[(*count)++];
    *c = (pjrt_candidate){.options = options};
    snprintf(c->name, sizeof c->name, "%s", name);
}

int pjrt_candidates(device_precision precision, const char *device_kind, bool is_tuning,
                    pjrt_candidate out[PJRT_CANDIDATES_MAX])
{
    static const stablehlo_precision precisions[] = {[DEVICE_FP32] = STABLEHLO_FP32,
                                                     [DEVICE_BF16] = STABLEHLO_BF16,
                                                     [DEVICE_INT8] = STABLEHLO_INT8};
    int count = 0;
    (void)device_kind;
    (void)is_tuning;
    add(out, &count, device_precision_names[precision],
        (stablehlo_options){.precision = precisions[precision]});
    if (precision == DEVICE_INT8)
        add(out, &count, "bf16", (stablehlo_options){.precision = STABLEHLO_BF16});
    return count;
}

void pjrt_choice_decide(pjrt_choice *c)
{
    c->chosen = 0;
    for (int i = 1; i < c->count; i++)
        if (c->trials[i].cycles > 0 && c->trials[i].cycles < c->trials[c->chosen].cycles)
            c->chosen = i;
}

const char *pjrt_choice_reason(const pjrt_choice *c)
{
    return c->count == 0 ? "the default" : "the fewest estimated cycles";
}

int pjrt_choice_write(const pjrt_choice *c, char out[PJRT_CHOICE_BYTES])
{
    int bytes =
        snprintf(out, PJRT_CHOICE_BYTES, "chosen %s\nreason %s\nleft_out %d\nis_tuned %d\n",
                 c->trials[c->chosen].name, pjrt_choice_reason(c), c->left_out, c->is_tuned);
    for (int i = 0; i < c->count && bytes < PJRT_CHOICE_BYTES; i++)
        bytes +=
            snprintf(out + bytes, PJRT_CHOICE_BYTES - (size_t)bytes, "tried %s %lld %d\n",
                     c->trials[i].name, (long long)c->trials[i].cycles, c->trials[i].unestimated);
    assert(bytes < PJRT_CHOICE_BYTES);
    return bytes;
}

status pjrt_choice_read(const char *text, pjrt_choice *out)
{
    pjrt_choice c = {.chosen = -1};
    char chosen[64] = "";
    for (const char *line = text; *line != 0; line += strcspn(line, "\n"), line += *line == '\n') {
        pjrt_trial t = {0};
        long long cycles;
        int is_tuned;
        if (sscanf(line, "is_tuned %d", &is_tuned) == 1)
            c.is_tuned = is_tuned != 0;
        if (sscanf(line, "chosen %63s", chosen) == 1 ||
            sscanf(line, "left_out %d", &c.left_out) == 1 ||
            sscanf(line, "tried %63s %lld %d", t.name, &cycles, &t.unestimated) != 3)
            continue;
        t.cycles = cycles;
        if (c.count == PJRT_CANDIDATES_MAX)
            return status_fail(STATUS_CORRUPT, "a choice of too many programs");
        if (strcmp(t.name, chosen) == 0)
            c.chosen = c.count;
        c.trials[c.count++] = t;
    }
    if (c.chosen < 0)
        return status_fail(STATUS_CORRUPT, "a choice without what was chosen");
    *out = c;
    return STATUS_OK;
}
