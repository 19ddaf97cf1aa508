#ifndef BASE_IDENTITY_BUILD_ID_H
#define BASE_IDENTITY_BUILD_ID_H

#include <stdint.h>

/* A hash of the running program's build id, which the linker makes of all its code (GNU ld,
 * --build-id); 0: it has none. For caches whose content another build may lay out otherwise. Any
 * thread. */
uint64_t build_id_hash(void);

#endif
