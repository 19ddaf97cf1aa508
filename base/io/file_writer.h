#ifndef BASE_IO_FILE_WRITER_H
#define BASE_IO_FILE_WRITER_H

#include <stddef.h>

#include "base/status.h"

/* Writes a new file from pieces in memory, through io_uring or pwrite, as base/io/file_reader.h
 * decided. */
typedef struct file_part {
    const void *data;
    size_t bytes;
} file_part;

/* Creates or truncates `path`, writes the parts one after another and syncs them to the disk. Not
 * atomic: write under another name and rename. STATUS_IO (disk full, read-only folder, ...): what
 * was written by then stays. Any thread; blocks. */
status file_writer_write(const char *path, const file_part *parts, int part_count) MUST_CHECK;

/* The same under a name of this process (`path` shorter than 4,096 bytes), renamed to `path` when
 * it is whole: others see the old file or the new one. On failure nothing is left behind. */
status file_writer_replace(const char *path, const file_part *parts, int part_count) MUST_CHECK;

#endif
