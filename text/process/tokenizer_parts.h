#ifndef TEXT_PROCESS_TOKENIZER_PARTS_H
#define TEXT_PROCESS_TOKENIZER_PARTS_H

#include "text/decode/decoder.h"
#include "text/model/model.h"
#include "text/normalize/normalizer.h"
#include "text/process/processor.h"
#include "text/split/splitter.h"
#include "text/vocabulary/added.h"

/* What a tokenizer is made of. Only the loader writes it. */

#define TOKENIZER_STEPS_MAX 64 /* of each kind */

struct tokenizer {
    uint64_t serial; /* of all tokenizers of the process, for caches */
    normalizer normalizers[TOKENIZER_STEPS_MAX];
    size_t normalizer_count;
    uint8_t ascii[128]; /* what the normalisers make of ASCII: normalizer_ascii_table() */
    splitter splitters[TOKENIZER_STEPS_MAX];
    size_t splitter_count;
    model model;
    added_tokens added;
    processor processor;
    decoder decoders[TOKENIZER_STEPS_MAX];
    size_t decoder_count;
    bool has_decoder;
};

#endif
