#include <stdio.h>
#include "base/clock.h"
#include "tests/sim/sim.h"
int main(int argc, char **argv)
{
    static sim_result r;
    sim_config c;
    (void)argc, (void)argv;
    for (int k = 0; k < SIM_SCHEDULERS; k++) {
        sim_default(&c);
        c.scheduler = k;
        c.requests = 30000;
        uint64_t t = clock_now_ns();
        double g = sim_goodput_at(&c, 0.99, 100, 12000, &r);
        printf("%-10s goodput %.0f att %.4f waste %.3f batch %.1f busy %.2f p99 %.1f ms decide %.0f ns err %.2f ms, %.2f s\n", sim_scheduler_name(k), g, r.attainment, r.waste,
               (double)r.rows / r.batches, r.busy, histogram_quantile(&r.latency, .99) / 1e6, r.decide_ns, r.estimate_error/1e6, (clock_now_ns()-t)/1e9);
        double base = c.rate;
        for (double x = 0.9; x < 3.1; x += x < 1 ? 0.3 : 0.8) {
            c.rate = base * x;
            sim_run(&c, &r);
            printf("   x%.1f goodput %.0f att %.4f refused %ld dropped %ld late %ld batch %.1f waste %.3f p99 %.1f busy %.2f decide %.0f\n", x, r.goodput, r.attainment, r.streams[0].refused, r.streams[0].dropped, r.streams[0].late,(double)r.rows / r.batches, r.waste,  histogram_quantile(&r.latency, .99) / 1e6, r.busy, r.decide_ns);
        }
    }
}
