#include "devices/pjrt/schedule/bundles.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "devices/pjrt/schedule/internal.h"

/* Room for one more item in an array of `*count`; NULL: no memory. */
static void *grow(void *items, int count, int *capacity, size_t item_bytes)
{
    if (count < *capacity)
        return items;
    int wanted = *capacity > 0 ? 2 * *capacity : 64;
    void *made = realloc(items, (size_t)wanted * item_bytes);
    if (made != NULL)
        *capacity = wanted;
    return made;
}

/* --- names --- */

static size_t hash_of(const char *text, size_t bytes)
{
    size_t hash = 1469598103934665603u;
    for (size_t i = 0; i < bytes; i++)
        hash = (hash ^ (unsigned char)text[i]) * 1099511628211u;
    return hash;
}

static void place(bundles *b, int number)
{
    size_t mask = (size_t)b->slot_count - 1;
    size_t at = hash_of(b->names[number].text, b->names[number].bytes) & mask;
    while (b->slots[at] != BUNDLES_NOTHING)
        at = (at + 1) & mask;
    b->slots[at] = number;
}

static bool make_slots(bundles *b)
{
    int count = b->slot_count > 0 ? 2 * b->slot_count : 256;
    int *slots = malloc((size_t)count * sizeof *slots);
    if (slots == NULL)
        return false;
    for (int i = 0; i < count; i++)
        slots[i] = BUNDLES_NOTHING;
    free(b->slots);
    b->slots = slots;
    b->slot_count = count;
    for (int i = 0; i < b->name_count; i++)
        place(b, i);
    return true;
}

/* The number of a register or a word of memory. */
static int number_of(bundles *b, const char *text, size_t bytes)
{
    if (2 * b->name_count >= b->slot_count && !make_slots(b)) {
        b->is_broken = true;
        return 0;
    }
    size_t mask = (size_t)b->slot_count - 1;
    for (size_t at = hash_of(text, bytes) & mask; b->slots[at] != BUNDLES_NOTHING;
         at = (at + 1) & mask) {
        const bundle_name *n = &b->names[b->slots[at]];
        if (n->bytes == bytes && memcmp(n->text, text, bytes) == 0)
            return b->slots[at];
    }
    bundle_name *names = grow(b->names, b->name_count, &b->name_capacity, sizeof *names);
    char *copy = arena_copy_string(&b->memory, text, bytes);
    b->names = names != NULL ? names : b->names;
    if (names == NULL || copy == NULL) {
        b->is_broken = true;
        return 0;
    }
    names[b->name_count] = (bundle_name){copy, bytes};
    place(b, b->name_count);
    return b->name_count++;
}

/* --- reading an instruction --- */

static bool starts(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

static const char *skip_blanks(const char *at)
{
    while (isspace((unsigned char)*at))
        at++;
    return at;
}

/* The bytes of a register's name, such as "%s20_s1"; 0: there is none at `at`. */
static size_t register_bytes(const char *at)
{
    size_t n = 0;
    if (at[n++] != '%')
        return 0;
    while (islower((unsigned char)at[n]))
        n++;
    while (isdigit((unsigned char)at[n]) || at[n] == '_' || islower((unsigned char)at[n]))
        n++;
    return n > 1 ? n : 0;
}

/* "(%p1_p0)" or "(!%p1_p0)" somewhere in the instruction: taken out of it. */
static predicate take_predicate(bundles *b, char *text)
{
    for (char *at = strchr(text, '('); at != NULL; at = strchr(at + 1, '(')) {
        const char *name = at + 1 + (at[1] == '!');
        size_t bytes = register_bytes(name);
        if (bytes < 3 || name[1] != 'p' || name[bytes] != ')')
            continue;
        predicate p = {number_of(b, name, bytes), at[1] == '!'};
        memset(at, ' ', (size_t)(name + bytes + 1 - at));
        return p;
    }
    return (predicate){.name = BUNDLES_NOTHING};
}

static void add_operand(bundles *b, step *s, operand o)
{
    operand *items = grow(b->operands, b->operand_count, &b->operand_capacity, sizeof *b->operands);
    if (items == NULL) {
        b->is_broken = true;
        return;
    }
    b->operands = items;
    items[b->operand_count++] = o;
    s->operand_count++;
}

/* A register, a word of memory in brackets, or a number; all else is unknown. */
static operand read_operand(bundles *b, const char *text, size_t bytes)
{
    char *end;
    if (bytes > 0 && (*text == '%' || *text == '['))
        return (operand){.name = number_of(b, text, bytes)};
    long long number = strtoll(text, &end, 10);
    bool is_number = end == text + bytes && bytes > 0 && (*text == '-' || isdigit(*text));
    return (operand){.name = BUNDLES_NOTHING, .is_known = is_number, .value = (uint32_t)number};
}

/* What lies between commas. */
static void read_operands(bundles *b, step *s, const char *text)
{
    while (*text != 0) {
        size_t bytes = strcspn(text, ",");
        const char *from = skip_blanks(text), *end = text + bytes;
        while (end > from && isspace((unsigned char)end[-1]))
            end--;
        if (end > from)
            add_operand(b, s, read_operand(b, from, (size_t)(end - from)));
        text += bytes + (text[bytes] == ',');
    }
}

static step *add_step(bundles *b, bundle *to, int assigned, operation kind)
{
    step *s = arena_allocate_zeroed(&b->memory, 1, sizeof *s);
    if (s == NULL) {
        b->is_broken = true;
        return NULL;
    }
    *s = (step){.name = assigned,
                .operation = kind,
                .predicate = {.name = BUNDLES_NOTHING},
                .first_operand = b->operand_count};
    *to->last_step = s;
    to->last_step = &s->next;
    return s;
}

static operation operation_of(const char *text, size_t bytes)
{
    static const struct {
        const char *text;
        operation operation;
    } known[] = {{"move", MOVE},       {"smov", MOVE},        {"pmov", MOVE},
                 {"int_to_ptr", MOVE}, {"pneg", NOT},         {"scalar_select", SELECT},
                 {"scmp", COMPARE},    {"sshll", SHIFT_LEFT}, {"sshrl", SHIFT_RIGHT},
                 {"sadd", ADD},        {"ssub", SUBTRACT},    {"smul", MULTIPLY},
                 {"sand", AND},        {"sor", OR},           {"sxor", XOR},
                 {"scalar_lea", ADD},  {"pand", BOTH},        {"por", EITHER},
                 {"pnand", NOT_BOTH},  {"sphi", MOVE},        {"sshra", SHIFT_SIGNED}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strlen(known[i].text) == bytes && memcmp(known[i].text, text, bytes) == 0)
            return known[i].operation;
    return UNKNOWN;
}

/* "lt.s32.totalorder" */
static void read_comparison(step *s, const char *types)
{
    static const char *const known[] = {
        [LESS] = "lt.",          [LESS_EQUAL] = "le.", [GREATER] = "gt.",
        [GREATER_EQUAL] = "ge.", [EQUAL] = "eq.",      [NOT_EQUAL] = "ne."};
    bool is_found = false;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (starts(types, known[i])) {
            s->comparison = (comparison)i;
            is_found = true;
        }
    s->is_unsigned = starts(types + 3 * is_found, "u32");
    if (!is_found)
        s->operation = UNKNOWN;
}

/* "smem:[ADDRESS]]" as the word "[ADDRESS]"; BUNDLES_NOTHING: there is none. */
static int memory_in(bundles *b, const char *text)
{
    const char *at = strstr(text, "[smem:[");
    const char *end = at != NULL ? strstr(at, "]]") : NULL;
    return end != NULL ? number_of(b, at + 6, (size_t)(end + 1 - (at + 6))) : BUNDLES_NOTHING;
}

/* "sst [smem:[ADDRESS]] %s1_s1": a word of memory is assigned. */
static bool read_store(bundles *b, bundle *to, const char *text, predicate p)
{
    const char *at = strstr(text, "sst [smem:[");
    const char *from = at != NULL ? strstr(at, "]]") : NULL;
    size_t bytes = from != NULL ? register_bytes(from = skip_blanks(from + 2)) : 0;
    if (bytes == 0)
        return false;
    step *s = add_step(b, to, memory_in(b, at), MOVE);
    if (s != NULL) {
        s->predicate = p;
        add_operand(b, s, (operand){.name = number_of(b, from, bytes)});
    }
    return true;
}

/* "%s1_s1 = sld [smem:[ADDRESS]]"; the core is the first of two. */
static void read_load(bundles *b, step *s, const char *rest, bool is_core_number)
{
    int address = memory_in(b, rest);
    if (is_core_number)
        add_operand(b, s, (operand){.name = BUNDLES_NOTHING, .is_known = true});
    else if (address != BUNDLES_NOTHING)
        add_operand(b, s, (operand){.name = address});
    else
        s->operation = UNKNOWN;
}

/* "%s1_s1 = smov.u32 0": of scalar registers and predicates. */
static void read_assignment(bundles *b, bundle *to, const char *text, predicate p, bool is_core)
{
    size_t bytes = register_bytes(text);
    if (bytes < 3 || (text[1] != 's' && text[1] != 'p') || !starts(text + bytes, " = "))
        return;
    const char *kind = text + bytes + 3;
    size_t kind_bytes = strcspn(kind, ". \t\n"), whole = strcspn(kind, " \t\n");
    step *s = add_step(b, to, number_of(b, text, bytes), operation_of(kind, kind_bytes));
    if (s == NULL)
        return;
    s->predicate = p;
    s->is_phi = kind_bytes == 4 && starts(kind, "sphi");
    if (kind_bytes == 3 && starts(kind, "sld")) {
        s->operation = MOVE;
        read_load(b, s, kind + whole, is_core);
        return;
    }
    if (s->operation == COMPARE)
        read_comparison(s, kind + kind_bytes + (kind[kind_bytes] == '.'));
    read_operands(b, s, kind + whole);
}

static void read_branch(bundle *to, const char *text, predicate p)
{
    const char *target = strstr(text, "target = $region");
    to->has_branch = true;
    to->taken = p;
    to->target = target != NULL ? strtoll(target + 16, NULL, 10) : BUNDLES_NOTHING;
}

/* Comments become blanks; whether one of them says that the number of the core is read. */
static bool blank_comments(char *text)
{
    bool is_core_number = false;
    for (char *at = strstr(text, "/*"); at != NULL; at = strstr(at, "/*")) {
        char *end = strstr(at, "*/");
        char *behind = end != NULL ? end + 2 : at + strlen(at);
        char kept = *behind;
        *behind = 0;
        is_core_number |= strstr(at, "megacore core id") != NULL;
        memset(at, ' ', (size_t)(behind - at));
        *behind = kept;
    }
    return is_core_number;
}

/* One instruction of a bundle, whose text this changes. */
static void read_step(bundles *b, bundle *to, char *text)
{
    bool is_core_number = blank_comments(text);
    for (const char *at = strstr(text, "vmatmul"); at != NULL; at = strstr(at + 7, "vmatmul"))
        to->products += at[7] != '_' && !isalnum((unsigned char)at[7]);
    predicate p = take_predicate(b, text);
    const char *from = skip_blanks(text);
    if (strstr(from, "sbr.rel") != NULL)
        read_branch(to, from, p);
    else if (!read_store(b, to, from, p))
        read_assignment(b, to, from, p, is_core_number);
}

/* --- reading a function --- */

static void add_region(bundles *b, int64_t number)
{
    for (int i = 0; i < b->region_count; i++)
        if (b->regions[i].number == number)
            return;
    region *items = grow(b->regions, b->region_count, &b->region_capacity, sizeof *items);
    if (items == NULL) {
        b->is_broken = true;
        return;
    }
    b->regions = items;
    items[b->region_count++] = (region){number, b->count};
}

/* Behind a bundle: "Start region 7 :: End region 8". */
static void read_marks(bundles *b, bundle *to, const char *marks)
{
    static const char *const begins[] = {"Start region ", "Start/End empty region "};
    for (size_t i = 0; i < sizeof begins / sizeof *begins; i++)
        for (const char *at = strstr(marks, begins[i]); at != NULL; at = strstr(at, begins[i])) {
            at += strlen(begins[i]);
            add_region(b, strtoll(at, NULL, 10));
        }
    to->ends_region = strstr(marks, "End region") != NULL;
}

/* Whether a line begins a bundle: "  0x1a LB: > { ..." or "   0   :  { ...". */
static bool is_bundle(const char *line, const char *end)
{
    while (line < end && (*line == ' ' || *line == '\t'))
        line++;
    if (end - line > 2 && line[0] == '0' && line[1] == 'x')
        line += 2;
    const char *digits = line;
    while (line < end && isxdigit((unsigned char)*line) && !isupper((unsigned char)*line))
        line++;
    if (line == digits || line == end || (*line != ' ' && *line != '\t'))
        return false;
    while (line < end && (*line == ' ' || *line == '\t'))
        line++;
    if (end - line > 2 && isupper((unsigned char)line[0]) && isupper((unsigned char)line[1]))
        line += 2;
    while (line < end && (*line == ' ' || *line == '\t'))
        line++;
    return end - line > 1 && line[0] == ':' && line[1] == ' ';
}

/* The text of one bundle, with a zero byte behind it; changed by this. */
static status read_bundle(bundles *b, char *text)
{
    char *at = strchr(text, '{'), *end = strrchr(text, '}');
    if (at == NULL || end == NULL || end < at)
        return status_fail(STATUS_CORRUPT, "a bundle without braces");
    bundle *items = grow(b->items, b->count, &b->capacity, sizeof *items);
    if (items == NULL)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory for a schedule");
    b->items = items;
    bundle *made = &items[b->count];
    *made = (bundle){.taken = {.name = BUNDLES_NOTHING}};
    made->last_step = &made->steps;
    read_marks(b, made, end + 1);
    *end = 0;
    for (char *from = at + 1; from != NULL;) {
        char *next = strstr(from, ";;");
        if (next != NULL)
            *next = 0;
        read_step(b, made, from);
        from = next != NULL ? next + 2 : NULL;
    }
    made->last_step = NULL; /* the array may move */
    b->count++;
    return STATUS_OK;
}

static const char *line_end(const char *at, const char *end)
{
    const char *found = memchr(at, '\n', (size_t)(end - at));
    return found != NULL ? found : end;
}

/* `text` is changed. A bundle reaches to the next one: comments may have several lines. */
static status read_bundles(bundles *b, char *text, const char *end)
{
    char *open = NULL;
    status s = STATUS_OK;
    for (char *line = text; line < end && !s; line = (char *)line_end(line, end) + 1) {
        if (!is_bundle(line, line_end(line, end)))
            continue;
        if (open != NULL) {
            line[-1] = 0;
            s = read_bundle(b, open);
        }
        open = line;
    }
    return s || open == NULL ? s : read_bundle(b, open);
}

status bundles_parse(const char *text, size_t bytes, bundles **out)
{
    bundles *b = calloc(1, sizeof *b);
    char *copy = malloc(bytes + 1);
    status s = b != NULL && copy != NULL
                   ? STATUS_OK
                   : status_fail(STATUS_OUT_OF_MEMORY, "no memory for a schedule");
    if (s == STATUS_OK) {
        memcpy(copy, text, bytes);
        copy[bytes] = 0;
        s = read_bundles(b, copy, copy + bytes);
    }
    free(copy);
    if (s == STATUS_OK && b->is_broken)
        s = status_fail(STATUS_OUT_OF_MEMORY, "no memory for a schedule");
    if (s)
        bundles_destroy(b);
    else
        *out = b;
    return s;
}

void bundles_destroy(bundles *b)
{
    if (b == NULL)
        return;
    arena_dispose(&b->memory);
    free(b->items);
    free(b->operands);
    free(b->regions);
    free(b->names);
    free(b->slots);
    free(b->values);
    free(b);
}

void bundles_count_delays(const bundles *b, int counts[BUNDLES_DELAY_MAX + 1])
{
    for (int i = 0; i < b->count; i++) {
        int end = i + 1;
        if (!b->items[i].has_branch)
            continue;
        while (end < b->count && !b->items[end].ends_region)
            end++;
        int distance = end < b->count ? end - i : 0;
        if (distance <= BUNDLES_DELAY_MAX)
            counts[distance]++;
    }
}
