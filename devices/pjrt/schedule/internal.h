#ifndef DEVICES_PJRT_SCHEDULE_INTERNAL_H
#define DEVICES_PJRT_SCHEDULE_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "devices/pjrt/schedule/bundles.h"

/* A parsed function: between bundles.c, which reads it, and run.c, which runs it. */

#define BUNDLES_NOTHING (-1)

/* What a scalar instruction does with its operands; all others make something unknown. */
typedef enum operation {
    UNKNOWN,
    MOVE,
    NOT,
    SELECT,
    COMPARE,
    SHIFT_LEFT,
    SHIFT_RIGHT,
    SHIFT_SIGNED,
    ADD,
    SUBTRACT,
    MULTIPLY,
    AND,
    OR,
    XOR,
    BOTH,
    EITHER,
    NOT_BOTH
} operation;

typedef enum comparison { LESS, LESS_EQUAL, GREATER, GREATER_EQUAL, EQUAL, NOT_EQUAL } comparison;

/* A register or a word of scalar memory by its number, or a literal. */
typedef struct operand {
    int name; /* BUNDLES_NOTHING: `value`, if it is known */
    bool is_known;
    uint32_t value;
} operand;

typedef struct predicate {
    int name; /* BUNDLES_NOTHING: always */
    bool is_negated;
} predicate;

typedef struct step {
    int name; /* what is assigned */
    operation operation;
    comparison comparison;
    bool is_unsigned, is_phi;
    predicate predicate;
    int first_operand, operand_count;
    struct step *next;
} step;

typedef struct bundle {
    step *steps, **last_step;
    bool has_branch, ends_region;
    predicate taken;
    int64_t target; /* region */
    int products;
} bundle;

typedef struct region {
    int64_t number;
    int bundle;
} region;

typedef struct value {
    bool is_known;
    uint32_t value;
    uint64_t time; /* of the last assignment; 0: none */
} value;

typedef struct bundle_name {
    const char *text;
    size_t bytes;
} bundle_name;

struct bundles {
    arena memory;
    bundle *items;
    int count, capacity;
    operand *operands;
    int operand_count, operand_capacity;
    region *regions;
    int region_count, region_capacity;
    bundle_name *names; /* by number */
    int name_count, name_capacity;
    int *slots; /* open addressing: numbers by hash, BUNDLES_NOTHING: free */
    int slot_count;
    value *values, *results; /* while it runs */
    uint64_t now;
    bool is_broken; /* without memory */
};

#endif
