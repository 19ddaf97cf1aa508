#include <stdlib.h>

#include "devices/pjrt/schedule/bundles.h"
#include "devices/pjrt/schedule/internal.h"

#define STEPS_MAX 20000000

static value read_value(const bundles *b, const operand *o)
{
    return o->name != BUNDLES_NOTHING ? b->values[o->name]
                                      : (value){.is_known = o->is_known, .value = o->value};
}

typedef enum truth { NO, YES, PERHAPS } truth;

static truth holds(const bundles *b, predicate p)
{
    if (p.name == BUNDLES_NOTHING)
        return YES;
    const value *v = &b->values[p.name];
    if (!v->is_known)
        return PERHAPS;
    return (v->value != 0) != p.is_negated ? YES : NO;
}

static bool compare(const step *s, uint32_t x, uint32_t y)
{
    int64_t a = s->is_unsigned ? (int64_t)x : (int64_t)(int32_t)x;
    int64_t c = s->is_unsigned ? (int64_t)y : (int64_t)(int32_t)y;
    switch (s->comparison) {
    case LESS:
        return a < c;
    case LESS_EQUAL:
        return a <= c;
    case GREATER:
        return a > c;
    case GREATER_EQUAL:
        return a >= c;
    case EQUAL:
        return a == c;
    default:
        return a != c;
    }
}

/* Known as soon as one of the two decides. */
static value decide(operation kind, value x, value y)
{
    bool decides = kind == EITHER; /* true does; else false does */
    bool is_decided =
        (x.is_known && (x.value != 0) == decides) || (y.is_known && (y.value != 0) == decides);
    if (!is_decided && !(x.is_known && y.is_known))
        return (value){.is_known = false};
    bool result = is_decided ? decides : !decides;
    return (value){.is_known = true, .value = kind == NOT_BOTH ? !result : result};
}

static uint32_t shift(operation kind, uint32_t x, uint32_t by)
{
    if (kind == SHIFT_SIGNED)
        return (uint32_t)((int32_t)x >> (by > 31 ? 31 : by));
    if (by > 31)
        return 0;
    return kind == SHIFT_LEFT ? x << by : x >> by;
}

/* Of known operands; `x` has three. */
static uint32_t compute(const step *s, const uint32_t x[3])
{
    switch (s->operation) {
    case MOVE:
        return x[0];
    case NOT:
        return x[0] == 0;
    case SELECT:
        return x[0] != 0 ? x[1] : x[2];
    case COMPARE:
        return compare(s, x[0], x[1]);
    case ADD:
        return x[0] + x[1];
    case SUBTRACT:
        return x[0] - x[1];
    case MULTIPLY:
        return x[0] * x[1];
    case AND:
        return x[0] & x[1];
    case OR:
        return x[0] | x[1];
    case XOR:
        return x[0] ^ x[1];
    default:
        return shift(s->operation, x[0], x[1]);
    }
}

static int operands_of(operation kind)
{
    return kind == MOVE || kind == NOT ? 1 : kind == SELECT ? 3 : 2;
}

static value result_of(const bundles *b, const step *s)
{
    uint32_t x[3] = {0};
    const operand *operands = b->operands + s->first_operand;
    if (s->operation == UNKNOWN || s->operand_count < operands_of(s->operation))
        return (value){.is_known = false};
    if (s->operation >= BOTH)
        return decide(s->operation, read_value(b, &operands[0]), read_value(b, &operands[1]));
    for (int i = 0; i < s->operand_count; i++) {
        value v = read_value(b, &operands[i]);
        if (!v.is_known)
            return (value){.is_known = false};
        if (i < 3)
            x[i] = v.value;
    }
    return (value){.is_known = true, .value = compute(s, x)};
}

static void assign(bundles *b, int name, value v)
{
    v.time = ++b->now;
    b->values[name] = v;
}

/* That of the operands which was assigned last: the way by which the bundle was reached. */
static value latest_of(const bundles *b, const step *s)
{
    value latest = {.is_known = false};
    for (int i = 0; i < s->operand_count; i++) {
        value v = read_value(b, &b->operands[s->first_operand + i]);
        if (i == 0 || v.time > latest.time)
            latest = v;
    }
    return latest;
}

/* All operands are read before anything is assigned, but for the phis, which come first. */
static void issue(bundles *b, const bundle *of)
{
    int count = 0;
    for (const step *s = of->steps; s != NULL; s = s->next)
        if (s->is_phi)
            assign(b, s->name, latest_of(b, s));
    for (const step *s = of->steps; s != NULL; s = s->next) {
        truth t = s->is_phi ? NO : holds(b, s->predicate);
        b->results[count] = t == YES ? result_of(b, s) : (value){.is_known = false};
        b->results[count++].time = t != NO;
    }
    count = 0;
    for (const step *s = of->steps; s != NULL; s = s->next, count++)
        if (b->results[count].time != 0)
            assign(b, s->name, b->results[count]);
}

static int most_steps(const bundles *b)
{
    int most = 0;
    for (int i = 0; i < b->count; i++) {
        int count = 0;
        for (const step *s = b->items[i].steps; s != NULL; s = s->next)
            count++;
        most = count > most ? count : most;
    }
    return most;
}

static int find_region(const bundles *b, int64_t number)
{
    for (int i = 0; i < b->region_count; i++)
        if (b->regions[i].number == number)
            return b->regions[i].bundle;
    return BUNDLES_NOTHING;
}

/* Where the branch leads, BUNDLES_NOTHING if it is not taken or leads nowhere. */
static int take_branch(const bundles *b, const bundle *of, bundles_issued *issued)
{
    truth taken = of->has_branch ? holds(b, of->taken) : NO;
    issued->unknown_branches += taken == PERHAPS;
    return taken == YES ? find_region(b, of->target) : BUNDLES_NOTHING;
}

static status run(bundles *b, int delay, bundles_issued *out)
{
    bundles_issued issued = {0};
    int target = BUNDLES_NOTHING,
        land = BUNDLES_NOTHING; /* of a taken branch; its last delay slot */
    for (int at = 0; at < b->count;) {
        const bundle *of = &b->items[at];
        if (++issued.bundles > STEPS_MAX)
            return status_fail(STATUS_CORRUPT, "a schedule that does not end");
        issued.products += of->products;
        issue(b, of);
        int leads = take_branch(b, of, &issued);
        if (leads != BUNDLES_NOTHING && target != BUNDLES_NOTHING)
            return status_fail(STATUS_CORRUPT, "a branch in another one's delay slots");
        if (leads != BUNDLES_NOTHING) {
            target = leads;
            land = at + delay;
        }
        bool lands = target != BUNDLES_NOTHING && (at >= land || at + 1 == b->count);
        at = lands ? target : at + 1;
        target = lands ? BUNDLES_NOTHING : target;
    }
    *out = issued;
    return STATUS_OK;
}

status bundles_run(bundles *b, int delay, bundles_issued *out)
{
    size_t results = (size_t)most_steps(b) + 1;
    free(b->values);
    b->values = calloc((size_t)b->name_count + 1 + results, sizeof *b->values);
    if (b->values == NULL)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory to run a schedule");
    b->results = b->values + b->name_count + 1;
    b->now = 0;
    return run(b, delay, out);
}
