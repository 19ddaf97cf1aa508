/* `penstock plan`: sequence buckets for observed lengths, with the waste of each. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/command.h"
#include "cli/flags.h"
#include "models/planner.h"

#define COST_NS_MAX 1e12

static void print_buckets(const planner_plan *plan)
{
    printf("\"sequence\": [");
    for (int i = 0; i < plan->count; i++)
        printf("%s%lld", i ? ", " : "", (long long)plan->buckets[i].sequence);
    printf("], \"waste\": %.6f, \"buckets\": [", plan->waste);
    for (int i = 0; i < plan->count; i++)
        printf("%s{\"sequence\": %lld, \"rows\": %llu, \"waste\": %.6f}", i ? ", " : "",
               (long long)plan->buckets[i].sequence, (unsigned long long)plan->buckets[i].rows,
               plan->buckets[i].waste);
    printf("]");
}

static void print_json(const length_histogram *h, const planner_plan *plan,
                       const planner_plan *powers)
{
    printf("{");
    print_buckets(plan);
    printf(", \"powers_of_two\": {");
    print_buckets(powers);
    printf("}, \"lengths\": {\"count\": %llu, \"mean\": %.3f, \"p50\": %lld, \"p95\": %lld, "
           "\"max\": %lld}}\n",
           (unsigned long long)length_histogram_total(h), length_histogram_mean(h),
           (long long)length_histogram_quantile(h, 0.5),
           (long long)length_histogram_quantile(h, 0.95),
           (long long)length_histogram_quantile(h, 1));
}

static void print_table(const char *title, const planner_plan *plan)
{
    printf("%s\n  sequence        rows   waste\n", title);
    for (int i = 0; i < plan->count; i++)
        printf("  %8lld  %10llu  %5.1f%%\n", (long long)plan->buckets[i].sequence,
               (unsigned long long)plan->buckets[i].rows, 100 * plan->buckets[i].waste);
    printf("  all                   %5.1f%%\n\n", 100 * plan->waste);
}

typedef struct plan_options {
    const char *file;
    int buckets_max;
    bool is_json;
    latency_fit cost;
} plan_options;

static void print_text(const length_histogram *h, const planner_plan *plan,
                       const planner_plan *powers)
{
    printf("%llu lengths, mean %.1f, p50 %lld, p95 %lld, max %lld tokens\n\n",
           (unsigned long long)length_histogram_total(h), length_histogram_mean(h),
           (long long)length_histogram_quantile(h, 0.5),
           (long long)length_histogram_quantile(h, 0.95),
           (long long)length_histogram_quantile(h, 1));
    print_table("planned", plan);
    print_table("powers of two", powers);
}

static status make_plan(const plan_options *o, const length_histogram *h)
{
    planner_plan plan, powers;
    int64_t sequences[PLANNER_BUCKETS_MAX];
    if (length_histogram_total(h) == 0)
        return status_fail(STATUS_INVALID_ARGUMENT, "%s contains no lengths", o->file);
    status s = planner_make(h, o->buckets_max, &o->cost, 0, &plan);
    if (s)
        return s;
    planner_measure(h, sequences, planner_powers_of_two(h, sequences), &o->cost, &powers);
    if (o->is_json)
        print_json(h, &plan, &powers);
    else
        print_text(h, &plan, &powers);
    return STATUS_OK;
}

static int run(const plan_options *o)
{
    length_histogram *h = NULL;
    status s = length_histogram_read(strcmp(o->file, "-") ? o->file : "/dev/stdin", &h);
    if (!s)
        s = make_plan(o, h);
    if (s)
        fprintf(stderr, "penstock plan: %s\n", status_message());
    free(h);
    return s ? 1 : 0;
}

int command_plan(int argc, char **argv)
{
    plan_options o = {.buckets_max = 8};
    const flag flags[] = {
        flag_required(flag_text(
            "--lengths", "FILE",
            "One sequence a line: its length in tokens (1 to 65536), or its token ids as a JSON "
            "array. - reads standard input.",
            &o.file)),
        flag_integer("--max-buckets", "N", "Most buckets to choose, 1 to 64; default: 8.",
                     &o.buckets_max, 1, PLANNER_BUCKETS_MAX),
        flag_switch("--json", "Print one JSON object.", &o.is_json),
        flag_number("--token-cost", "NS", "Measured cost of a token in ns.", &o.cost.token_ns, 0,
                    COST_NS_MAX),
        flag_number(
            "--square-cost", "NS",
            "Measured cost in ns of a pair of tokens in attention. With costs, the plan minimises "
            "time instead of padding.",
            &o.cost.square_ns, 0, COST_NS_MAX),
    };
    const flags_usage usage = {
        .command = "plan",
        .synopsis = "--lengths FILE [OPTION...]",
        .description = "Chooses sequence buckets for observed lengths, and prints the share of "
                       "padding in each, beside buckets of powers of two.",
        .flags = flags,
        .count = sizeof flags / sizeof *flags,
        .epilogue = "Put the result into model.json: \"buckets\": {\"batch\": [...], \"sequence\": "
                    "[...]}."};
    static_assert(PLANNER_BUCKETS_MAX == 64, "as the help says");
    int code = flags_parse(&usage, argc, argv);
    return code != FLAGS_OK ? code : run(&o);
}
