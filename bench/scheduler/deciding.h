#ifndef BENCH_SCHEDULER_DECIDING_H
#define BENCH_SCHEDULER_DECIDING_H

/* Measures what queueing and deciding cost while 10,000 jobs wait: batches are taken and as many
 * jobs come. Prints a line. */
void measure_deciding(void);

#endif
