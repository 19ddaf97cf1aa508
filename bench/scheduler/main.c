/* Goodput, attainment and waste of Penstock's scheduler and of others, simulated; what deciding
 * costs, measured. Prints tables; with a folder, draws attainment over the rate of each trace
 * there.
 *
 *     bench_scheduler [FOLDER [SEED]]     FOLDER -: no curves
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "bench/scheduler/deciding.h"
#include "tests/sim/sim.h"

#define TRACES 7
#define POINTS 24

static const char *const trace_names[TRACES] = {"heavy-tail", "bursts", "diurnal",    "uniform",
                                                "fixed",      "mixed",  "device-loss"};
static sim_result result;
static uint64_t seed = 1;

static void make(int trace, sim_config *c)
{
    sim_default(c);
    c->seed = seed;
    c->requests = 20000;
    c->arrivals = trace == 1 ? SIM_BURSTS : trace == 2 ? SIM_DIURNAL : SIM_POISSON;
    c->streams[0].lengths = trace == 3 ? SIM_UNIFORM : trace == 4 ? SIM_FIXED : SIM_HEAVY_TAIL;
    if (trace == 5) {
        c->model_count = 2;
        c->models[1] =
            (sim_model){.fixed_ns = 500000, .token_ns = 12000, .square_ns = 6, .weight = 1};
        c->stream_count = 3;
        c->streams[0].share = 6;
        c->streams[1] = (sim_stream){
            .share = 3, .slo_ns = 150000000, .lengths = SIM_UNIFORM, .model = 1, .priority = 1};
        c->streams[2] = (sim_stream){.share = 1, .slo_ns = 30000000, .lengths = SIM_FIXED};
    }
    c->lost_device = trace == 6 ? 1 : -1;
}

/* The baselines with the batch size that suits them best. */
static double best_goodput(sim_config *c, sim_scheduler kind)
{
    double best = 0;
    int64_t best_size = 16;
    c->scheduler = kind;
    for (int64_t size = 8; size <= 32; size *= 2) {
        c->batch_max = size;
        double g = sim_goodput_at(c, 0.99, 200, 40000, NULL);
        if (g > best) {
            best = g;
            best_size = size;
        }
        if (kind == SIM_PENSTOCK || kind == SIM_ORACLE)
            break;
    }
    c->batch_max = best_size;
    return best;
}

static void draw(const char *folder, int trace, double rate_max,
                 double attainment[SIM_SCHEDULERS][POINTS])
{
    static const char *const colours[] = {"#0b6", "#c33", "#d80", "#36c", "#888"};
    char path[512];
    snprintf(path, sizeof path, "%s/%s.svg", folder, trace_names[trace]);
    FILE *out = fopen(path, "w");
    if (out == NULL) {
        perror(path);
        exit(1);
    }
    fprintf(out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 640 360\" "
            "font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"640\" height=\"360\" "
            "fill=\"#fff\"/>\n<text x=\"50\" y=\"20\">requests in time over requests offered, by "
            "rate: %s</text>\n",
            trace_names[trace]);
    for (int i = 0; i <= 4; i++) {
        fprintf(out,
                "<path d=\"M50 %d H500\" stroke=\"#ddd\"/><text x=\"12\" y=\"%d\">%d%%</text>\n",
                320 - 70 * i, 324 - 70 * i, 25 * i);
        fprintf(out, "<text x=\"%d\" y=\"340\">%.0f</text>\n", 45 + 112 * i, rate_max * i / 4);
    }
    for (int k = 0; k < SIM_SCHEDULERS; k++) {
        fprintf(out, "<polyline fill=\"none\" stroke=\"%s\" stroke-width=\"2\" points=\"",
                colours[k]);
        for (int i = 0; i < POINTS; i++)
            fprintf(out, "%.1f,%.1f ", 50 + 450.0 * (i + 1) / POINTS, 320 - 280 * attainment[k][i]);
        fprintf(out, "\"/>\n<text x=\"515\" y=\"%d\" fill=\"%s\">%s</text>\n", 60 + 20 * k,
                colours[k], sim_scheduler_name(k));
    }
    fputs("</svg>\n", out);
    fclose(out);
}

static void run_trace(int trace, const char *folder)
{
    static double attainment[SIM_SCHEDULERS][POINTS];
    double ours = 0;
    sim_config c;
    make(trace, &c);
    double bound = sim_sorted_bound(&c);
    printf("\n%s (sorted beforehand, without deadlines: %.0f/s)\n"
           "  %-10s %10s %8s  at 2x Penstock's: %9s %10s %6s %6s\n",
           trace_names[trace], bound, "scheduler", "goodput99", "ratio", "goodput", "attainment",
           "waste", "batch");
    for (int k = 0; k < SIM_SCHEDULERS; k++) {
        make(trace, &c);
        double g = best_goodput(&c, k);
        ours = k == SIM_PENSTOCK ? g : ours;
        c.rate = 2 * ours;
        sim_run(&c, &result);
        printf("  %-10s %10.0f %8.2f %27.0f %10.3f %6.3f %6.1f\n", sim_scheduler_name(k), g,
               g / ours, result.goodput, result.attainment, result.waste,
               (double)result.rows / (double)(result.batches ? result.batches : 1));
        for (int i = 0; i < POINTS && folder != NULL; i++) {
            c.requests = 5000;
            c.rate = 2 * ours * (i + 1) / POINTS;
            sim_run(&c, &result);
            attainment[k][i] = result.attainment;
        }
    }
    if (folder != NULL)
        draw(folder, trace, 2 * ours, attainment);
}

int main(int argc, char **argv)
{
    const char *folder = argc > 1 && strcmp(argv[1], "-") != 0 ? argv[1] : NULL;
    seed = argc > 2 ? strtoull(argv[2], NULL, 10) : seed;
    setvbuf(stdout, NULL, _IOLBF, 0);
    measure_deciding();
    sim_config c;
    sim_default(&c);
    c.requests = 1000000;
    c.rate = 7000;
    uint64_t begun_ns = clock_thread_cpu_ns();
    sim_run(&c, &result);
    printf("a million simulated requests: %.2f s; %.2f us of each in admission, queue and policy\n",
           (double)(clock_thread_cpu_ns() - begun_ns) / 1e9, result.decide_ns / 1e3);
    for (int trace = 0; trace < TRACES; trace++)
        run_trace(trace, folder);
    return 0;
}
