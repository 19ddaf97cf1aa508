#ifndef SERVER_HTTP1_OVERRIDES_INPUT_BUFFER_H
#define SERVER_HTTP1_OVERRIDES_INPUT_BUFFER_H

#include <h2o.h>
#include <stdbool.h>

/* Replaces h2o_buffer_reserve() and h2o_buffer__do_free() for buffers that are larger than
 * INPUT_BUFFER_LIBRARY_BYTES: bodies of HTTP/1 requests. The library doubles a buffer until memory
 * is out, and then aborts. Ours asks first, and fails: the library ends the connection. */
#define INPUT_BUFFER_LIBRARY_BYTES ((size_t)65536)

typedef struct input_buffer_hooks {
    /* Whose buffer lies at `slot`, once for each that becomes large; NULL: nobody's. */
    void *(*owner)(h2o_buffer_t **slot);
    /* May it hold `bytes` more? */
    bool (*grow)(void *owner, size_t bytes);
    /* Is there no memory for the first bytes of another request? */
    bool (*is_short)(void);
    /* It holds `bytes` less. */
    void (*shrink)(void *owner, size_t bytes);
} input_buffer_hooks;

/* Is it counted by these hooks? */
bool input_buffer_is_counted(const h2o_buffer_t *b);

/* Once, before any loop runs; asserts that the library calls ours. `hooks` are copied. */
void input_buffer_install(const input_buffer_hooks *hooks);

#endif
