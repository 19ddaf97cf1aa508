#ifndef BASE_IO_FILE_USE_H
#define BASE_IO_FILE_USE_H

/* Files of a cache say by their modification time when they were last used: what was not used
 * longest is removed first (models/loading/cache_limit.h). */

/* The open file is used now. Where its times may not be set, nothing happens. Any thread. */
void file_use_mark(int descriptor);

#endif
