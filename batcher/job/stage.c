#include "batcher/job/stage.h"

#include <assert.h>

const char *stage_name(stage s)
{
    static const char *const names[STAGE_COUNT] = {
        [STAGE_ACCEPT] = "accept", [STAGE_PARSE] = "parse",     [STAGE_TOKENIZE] = "tokenize",
        [STAGE_ADMIT] = "admit",   [STAGE_QUEUE] = "queue",     [STAGE_FORM] = "form",
        [STAGE_PAD] = "pad",       [STAGE_PLACE] = "place",     [STAGE_EXECUTE] = "execute",
        [STAGE_SLICE] = "slice",   [STAGE_RESPOND] = "respond", [STAGE_RECORD] = "record",
    };
    assert((unsigned)s < STAGE_COUNT);
    return names[s];
}
