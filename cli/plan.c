/* `penstock plan`: sequence buckets for observed lengths, with the waste of each. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/command.h"
#include "models/planner.h"

static void print_help(FILE *out)
{
    fputs(
        "usage: penstock plan --lengths FILE [OPTION...]\n\n"
        "Chooses sequence buckets for observed lengths, and tells how much of each is padding,\n"
        "beside powers of two.\n\n"
        "  --lengths FILE     a line for each: its length (1 to 65536), or its token ids as a\n"
        "                     JSON array; - is standard input\n"
        "  --max-buckets N    at most so many buckets, 1 to 64 (default 8)\n"
        "  --json             one JSON object instead of a table\n"
        "  --token-cost NS    measured cost of a position, and\n"
        "  --square-cost NS   of a position beside another (attention): the plan then has the\n"
        "                     least time instead of the fewest positions\n"
        "  --help             this text\n\n"
        "The result goes into model.json: \"buckets\": {\"batch\": [...], \"sequence\": [...]}.\n",
        out);
}

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

typedef struct wishes {
    const char *file;
    int buckets_max;
    bool is_json;
    latency_fit cost;
} wishes;

static bool read_number(const char *text, double least, double most, double *out)
{
    char *end;
    *out = text ? strtod(text, &end) : 0;
    return text != NULL && end != text && *end == 0 && *out >= least && *out <= most;
}

/* -1: go on; else the exit status. */
static int read_arguments(int argc, char **argv, wishes *w)
{
    *w = (wishes){.buckets_max = 8};
    for (int i = 1; i < argc; i++) {
        const char *next = i + 1 < argc ? argv[i + 1] : NULL;
        double number;
        if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h")) {
            print_help(stdout);
            return 0;
        }
        if (!strcmp(argv[i], "--json")) {
            w->is_json = true;
            continue;
        }
        bool is_right = false;
        const char *limits = "a number of nanoseconds from 0 to 1e12";
        if (!strcmp(argv[i], "--lengths")) {
            limits = "a file";
            w->file = next;
            is_right = next != NULL;
        } else if (!strcmp(argv[i], "--max-buckets")) {
            limits = "a whole number from 1 to 64";
            static_assert(PLANNER_BUCKETS_MAX == 64, "as the text says");
            is_right = read_number(next, 1, PLANNER_BUCKETS_MAX, &number) && number == (int)number;
            w->buckets_max = is_right ? (int)number : 0;
        } else if (!strcmp(argv[i], "--token-cost")) {
            is_right = read_number(next, 0, 1e12, &w->cost.token_ns);
        } else if (!strcmp(argv[i], "--square-cost")) {
            is_right = read_number(next, 0, 1e12, &w->cost.square_ns);
        } else {
            fprintf(stderr, "penstock plan: there is no option \"%s\"\n", argv[i]);
            return 2;
        }
        if (!is_right) {
            fprintf(stderr, "penstock plan: %s wants %s, not \"%s\"\n", argv[i], limits,
                    next ? next : "");
            return 2;
        }
        i++;
    }
    if (w->file == NULL) {
        print_help(stderr);
        return 2;
    }
    return -1;
}

int command_plan(int argc, char **argv)
{
    wishes w;
    length_histogram *h;
    planner_plan plan, powers;
    int64_t sequences[PLANNER_BUCKETS_MAX];
    int code = read_arguments(argc, argv, &w);
    if (code >= 0)
        return code;
    if (length_histogram_read(strcmp(w.file, "-") ? w.file : "/dev/stdin", &h)) {
        fprintf(stderr, "penstock plan: %s\n", status_message());
        return 1;
    }
    if (length_histogram_total(h) == 0) {
        fprintf(stderr, "penstock plan: %s holds no lengths\n", w.file);
        free(h);
        return 1;
    }
    if (planner_make(h, w.buckets_max, &w.cost, 0, &plan)) {
        fprintf(stderr, "penstock plan: %s\n", status_message());
        free(h);
        return 1;
    }
    planner_measure(h, sequences, planner_powers_of_two(h, sequences), &w.cost, &powers);
    if (w.is_json) {
        print_json(h, &plan, &powers);
    } else {
        printf("%llu lengths, mean %.1f, p50 %lld, p95 %lld, longest %lld\n\n",
               (unsigned long long)length_histogram_total(h), length_histogram_mean(h),
               (long long)length_histogram_quantile(h, 0.5),
               (long long)length_histogram_quantile(h, 0.95),
               (long long)length_histogram_quantile(h, 1));
        print_table("planned", &plan);
        print_table("powers of two", &powers);
    }
    free(h);
    return 0;
}
