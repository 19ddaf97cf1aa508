#include "server/service/closure.h"

#include <assert.h>

const char *closure_name(closure why)
{
    static const char *const names[CLOSURE_COUNT] = {
        [CLOSURE_HANDSHAKE] = "handshake", [CLOSURE_HEAD] = "head",
        [CLOSURE_BODY] = "body",           [CLOSURE_RESPONSE] = "response",
        [CLOSURE_IDLE] = "idle",           [CLOSURE_AGE] = "age",
        [CLOSURE_ROOM] = "room",           [CLOSURE_ADDRESS] = "address",
        [CLOSURE_MEMORY] = "memory",       [CLOSURE_ABUSE] = "abuse",
    };
    assert((unsigned)why < CLOSURE_COUNT);
    return names[why];
}
