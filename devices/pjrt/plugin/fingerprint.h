#ifndef DEVICES_PJRT_PLUGIN_FINGERPRINT_H
#define DEVICES_PJRT_PLUGIN_FINGERPRINT_H

#include "devices/pjrt/plugin/session.h"

/* Which programs a plugin can run, by its own word: the AbiVersion extension of the API, and the
 * fingerprint of the topology. Optional; each part is left out where the plugin does not have it.
 */

#define PJRT_FINGERPRINT_BYTES 64

/* "abi 0123456789abcdef topology 0123456789abcdef", or "". It changes with whatever makes programs
 * of another process unusable. */
void pjrt_session_fingerprint(const pjrt_session *s, char out[PJRT_FINGERPRINT_BYTES]);

/* STATUS_UNSUPPORTED: the plugin says that the program is of another runtime. */
status pjrt_session_check_abi(const pjrt_session *s, pjrt_loaded_executable *e) MUST_CHECK;

#endif
