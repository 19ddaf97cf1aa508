#ifndef TEXT_SPLIT_SPLITTER_H
#define TEXT_SPLIT_SPLITTER_H

#include "base/status.h"
#include "text/aligned/aligned_text.h"
#include "text/pattern/pattern.h"

/* Pre-tokenizers: a list of steps, each cuts pieces of text into smaller ones; a few rewrite the
 * text besides. The steps and their order are those of tokenizer.json, where Sequences are flat
 * lists. */

/* What becomes of a delimiter (SplitDelimiterBehavior). */
typedef enum split_behavior {
    SPLIT_REMOVED,
    SPLIT_ISOLATED,
    SPLIT_MERGED_WITH_PREVIOUS,
    SPLIT_MERGED_WITH_NEXT,
    SPLIT_CONTIGUOUS
} split_behavior;

typedef enum splitter_kind {
    SPLITTER_BERT,         /* spaces removed, punctuation isolated */
    SPLITTER_PROPERTY,     /* characters with a property are delimiters */
    SPLITTER_CHARACTER,    /* so is one character */
    SPLITTER_WHITESPACE,   /* \w+|[^\w\s]+ */
    SPLITTER_BYTE_LEVEL,   /* GPT-2's expression, then bytes become characters */
    SPLITTER_METASPACE,    /* SentencePiece's words */
    SPLITTER_PATTERN,      /* a regular expression */
    SPLITTER_FIXED_LENGTH, /* so many characters */
} splitter_kind;

typedef enum split_prepend {
    SPLIT_PREPEND_ALWAYS,
    SPLIT_PREPEND_FIRST,
    SPLIT_PREPEND_NEVER
} split_prepend;

typedef struct splitter {
    splitter_kind kind;
    split_behavior behavior;  /* property, character, pattern */
    unsigned properties;      /* property */
    uint32_t character;       /* character; Metaspace's replacement */
    bool adds_prefix_space;   /* byte level */
    bool uses_expression;     /* byte level */
    bool keeps_bytes;         /* byte level, last step: the model takes bytes as they are */
    split_prepend prepend;    /* Metaspace */
    bool splits;              /* Metaspace */
    bool is_inverted;         /* pattern: what lies between matches are the delimiters */
    pattern *pattern;         /* owned */
    size_t length_characters; /* fixed length, at least 1 */
} splitter;

void splitter_dispose(splitter *s);

/* Text and its pieces on the way through the steps, and the memory for the next step's. */
typedef struct split_state {
    aligned_text *text, *next_text;
    pieces *pieces, *next_pieces;
    pattern_memory *memory;
} split_state;

/* STATUS_OUT_OF_MEMORY: the text or its pieces are broken. After each step, before the next. */
status split_check(const split_state *state) MUST_CHECK;

/* Runs a step. STATUS_UNSUPPORTED when a regular expression gives up; STATUS_OUT_OF_MEMORY. Any
 * thread. */
status splitter_apply(const splitter *s, split_state *state) MUST_CHECK;

/* The parts. */
void split_byte_level(const splitter *s, split_state *state);
void split_metaspace(const splitter *s, split_state *state);

#endif
