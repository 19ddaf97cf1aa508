#ifndef BATCHER_EXECUTE_SLICE_H
#define BATCHER_EXECUTE_SLICE_H

#include "batcher/execute/pad.h"

/* Copies the outputs of members [first, first + count) into their jobs, where they are not there
 * already, and stamps the stage. */
void slice_members(worker *w, const device_program *program, int first, int count,
                   const padded *from);

/* Copies each member's rows out of the bucket's outputs into its job's, cut to the job's length. */
void slice_rows(const model *m, const batch_member *members, int count, const tensor *outputs);

#endif
