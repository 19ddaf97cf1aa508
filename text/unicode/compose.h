#ifndef TEXT_UNICODE_COMPOSE_H
#define TEXT_UNICODE_COMPOSE_H

#include <stdbool.h>
#include <stdint.h>

/* The parts of the normalisation forms (Unicode Standard Annex 15), in Unicode 9 as the
 * `tokenizers` library has them. Any thread, after unicode_initialise(). */

#define UNICODE_PARTS_MAX 32

/* The full decomposition of a character; returns how many code points it has. */
unsigned unicode_decompose(uint32_t code, bool is_compatible, int32_t parts[UNICODE_PARTS_MAX]);
unsigned unicode_combining_class(uint32_t code);
/* The character that two compose to; 0: none. */
uint32_t unicode_compose(uint32_t first, uint32_t second);

#endif
