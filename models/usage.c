#include "models/usage.h"

/* The cell of that second, emptied if an older one is in it. Two threads that empty it at once lose
 * little: what the other adds meanwhile. */
static usage_cell *cell_of(model_usage *u, uint64_t now_ns)
{
    uint64_t second = now_ns / 1000000000u + 1, none = 0;
    usage_cell *c = &u->cells[second % USAGE_CELLS];
    uint64_t before = atomic_load_explicit(&c->second, memory_order_acquire);
    if (before != second && atomic_compare_exchange_strong(&c->second, &before, second)) {
        atomic_store_explicit(&c->real_tokens, 0, memory_order_relaxed);
        atomic_store_explicit(&c->computed_tokens, 0, memory_order_relaxed);
        atomic_store_explicit(&c->computed_kflops, 0, memory_order_relaxed);
        atomic_store_explicit(&c->peak_kflops, 0, memory_order_relaxed);
        atomic_store_explicit(&c->picodollars, 0, memory_order_relaxed);
    }
    atomic_compare_exchange_strong(&u->first_second, &none, second);
    return c;
}

static void add(_Atomic uint64_t *to, double amount)
{
    atomic_fetch_add_explicit(to, (uint64_t)amount, memory_order_relaxed);
}

void usage_add_execution(model_usage *u, uint64_t now_ns, const usage_execution *e)
{
    usage_cell *c = cell_of(u, now_ns);
    add(&c->computed_tokens, (double)e->computed_tokens);
    if (e->operations > 0 && e->peak_per_s > 0) {
        add(&c->computed_kflops, e->operations / 1e3);
        add(&c->peak_kflops, e->peak_per_s * e->device_s / 1e3);
    }
    add(&c->picodollars, e->dollars_per_hour / 3600 * e->device_s * 1e12);
}

void usage_add_tokens(model_usage *u, uint64_t now_ns, uint64_t real_tokens)
{
    add(&cell_of(u, now_ns)->real_tokens, (double)real_tokens);
}

static double get(const _Atomic uint64_t *from)
{
    return (double)atomic_load_explicit(from, memory_order_relaxed);
}

void usage_read(const model_usage *u, uint64_t now_ns, usage_summary *out)
{
    double real = 0, computed = 0, done = 0, peak = 0, picodollars = 0;
    uint64_t now = now_ns / 1000000000u + 1, first = atomic_load(&u->first_second);
    for (int i = 0; i < USAGE_CELLS; i++) {
        const usage_cell *c = &u->cells[i];
        uint64_t second = atomic_load_explicit(&c->second, memory_order_acquire);
        if (second == 0 || second > now || second + USAGE_WINDOW_S <= now)
            continue;
        real += get(&c->real_tokens);
        computed += get(&c->computed_tokens);
        done += get(&c->computed_kflops);
        peak += get(&c->peak_kflops);
        picodollars += get(&c->picodollars);
    }
    /* The second under way counts as far as it has come. */
    double span_s = (double)(now_ns % 1000000000u) * 1e-9;
    double before = first == 0 || first > now ? 0 : (double)(now - first);
    span_s += before < USAGE_WINDOW_S - 1 ? before : USAGE_WINDOW_S - 1;
    double share = computed > 0 ? (real < computed ? real / computed : 1) : 0;
    *out = (usage_summary){
        .tokens_per_s = span_s > 0 ? real / span_s : 0,
        .waste = computed > 0 ? 1 - share : 0,
        .mfu = peak > 0 ? done * share / peak : 0,
        .dollars_per_million_tokens = real > 0 ? picodollars * 1e-12 / real * 1e6 : 0,
    };
}
