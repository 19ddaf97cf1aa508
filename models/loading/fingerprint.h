#ifndef MODELS_LOADING_FINGERPRINT_H
#define MODELS_LOADING_FINGERPRINT_H

#include <stdint.h>

/* A number that names the contents of a model's files, for caches: names and bytes of all files in
 * `folder` (or of the one file that `folder` is), but model.json and hidden ones. Never 0.
 *
 * Reading hundreds of megabytes only to know them again takes longer than all the rest of a start,
 * so the number is kept in `cache_folder` (NULL: it is computed each time) together with each
 * file's size, inode and times of modification and change. While all of these agree the files are
 * not read. The kernel sets the time of change at each write and nobody can set it back; files
 * changed within the last two seconds are read again next time, since a clock tick may hide a
 * second change. */
uint64_t fingerprint_model(const char *folder, const char *cache_folder);

#endif
