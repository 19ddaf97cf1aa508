#ifndef BASE_IO_FILE_READER_H
#define BASE_IO_FILE_READER_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

/* Reads files through io_uring with many reads in flight, or through pread where they are smaller
 * than 1 MiB, or where the kernel or the seccomp profile of a container forbids io_uring. The first
 * call of 1 MiB and more decides and logs the decision;
 * PENSTOCK_IO=pread in the environment forces pread. Any thread may call; each call blocks until
 * all is read. */

typedef enum file_reader_way { FILE_READER_IO_URING, FILE_READER_PREAD } file_reader_way;

/* The way files are read in this process; decides at the first call. */
file_reader_way file_reader_chosen_way(void);

/* One range of an open file, and where its bytes go. */
typedef struct file_range {
    int descriptor;
    uint64_t offset;
    size_t bytes;
    void *data; /* room for `bytes` */
} file_range;

/* Reads all ranges, in any order. Errors: STATUS_CORRUPT when a file ends inside a range,
 * STATUS_IO otherwise; the contents of `data` are then undefined. */
status file_reader_read(const file_range *ranges, size_t range_count) MUST_CHECK;
/* The same through that mode: for tests. */
status file_reader_read_by(file_reader_way way, const file_range *ranges,
                           size_t range_count) MUST_CHECK;

/* Opens a regular file for reading. STATUS_NOT_FOUND, STATUS_IO; the message names the path. The
 * caller closes `*descriptor`. */
status file_reader_open(const char *path, int *descriptor, uint64_t *bytes) MUST_CHECK;

/* Reads a whole file into 64-byte aligned memory, which the caller frees with free(); a zero byte
 * follows the contents. STATUS_TOO_LARGE over `bytes_max`, and the errors above. */
status file_reader_read_whole(const char *path, size_t bytes_max, void **data,
                              size_t *bytes) MUST_CHECK;

#endif
