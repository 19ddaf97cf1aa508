#include "tests/kernels/emulate.h"

#include "kernels/cpu_features.h"

static uint64_t count;

uint64_t emulate_take_count(void)
{
    uint64_t taken = count;
    count = 0;
    return taken;
}

#if defined(__x86_64__)

#include <math.h>
#include <string.h>
#include <ucontext.h>
#include <xmmintrin.h>

#include "base/dtype.h"

/* Instructions with a three-byte VEX prefix and opcode map 0F38 (Intel SDM volume 2, chapter 2.3):
 * AMX tiles (volume 2: LDTILECFG ... TDPBUSD) and AVX-VNNI on xmm and ymm. */

static struct {
    uint8_t palette, start_row, reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
} configuration;
static uint8_t tiles[8][16][64];

typedef struct instruction {
    int opcode, prefix, second, reg, rm, is_256, is_memory; /* prefix: 0 none, 1 66, 2 F3, 3 F2 */
    uint8_t *address; /* of the memory operand, without the index of tile loads */
    uint64_t index;   /* scaled index register */
    size_t bytes;
} instruction;

static uint64_t general_register(const ucontext_t *u, int number)
{
    static const int order[16] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP,
                                  REG_RSI, REG_RDI, REG_R8,  REG_R9,  REG_R10, REG_R11,
                                  REG_R12, REG_R13, REG_R14, REG_R15};
    return (uint64_t)u->uc_mcontext.gregs[order[number]];
}

/* ModRM, SIB and displacement at `p`; returns the bytes they take. */
static size_t decode_memory(const ucontext_t *u, const uint8_t *p, int base_high, int index_high,
                            instruction *i)
{
    int mode = p[0] >> 6, low = p[0] & 7, base = low | base_high;
    size_t used = 1;
    if (low == 4) {
        int sib = p[used++], index = (sib >> 3 & 7) | index_high;
        base = (sib & 7) | base_high;
        low = sib & 7;
        if (index != 4)
            i->index = general_register(u, index) << (sib >> 6);
    }
    uint64_t address = general_register(u, base);
    int32_t displacement = 0;
    if (mode == 1) {
        displacement = (int8_t)p[used++];
    } else if (mode == 2 || (mode == 0 && low == 5)) {
        memcpy(&displacement, p + used, 4);
        used += 4;
        if (mode == 0) /* relative to the next instruction, or absolute */
            address = (p[0] & 7) == 5 ? (uint64_t)(p + used) : 0;
    }
    i->address = (uint8_t *)(address + (uint64_t)(int64_t)displacement);
    return used;
}

static bool decode(const ucontext_t *u, instruction *i)
{
    const uint8_t *p = (const uint8_t *)u->uc_mcontext.gregs[REG_RIP];
    if (p[0] != 0xc4 || (p[1] & 31) != 2)
        return false;
    memset(i, 0, sizeof *i);
    int reg_high = ~p[1] >> 4 & 8, index_high = ~p[1] >> 3 & 8, base_high = ~p[1] >> 2 & 8;
    i->prefix = p[2] & 3;
    i->is_256 = p[2] >> 2 & 1;
    i->second = ~p[2] >> 3 & 15;
    i->opcode = p[3];
    i->reg = (p[4] >> 3 & 7) | reg_high;
    i->rm = (p[4] & 7) | base_high;
    i->is_memory = p[4] >> 6 != 3;
    i->bytes = 5;
    if (i->is_memory)
        i->bytes = 4 + decode_memory(u, p + 4, base_high, index_high, i);
    return true;
}

static void configure(const instruction *i)
{
    memset(tiles, 0, sizeof tiles);
    memset(&configuration, 0, sizeof configuration);
    if (i->is_memory)
        memcpy(&configuration, i->address + i->index, sizeof configuration);
}

static void load_or_store_tile(const instruction *i)
{
    for (int r = 0; r < configuration.rows[i->reg]; r++) {
        uint8_t *row = i->address + i->index * (uint64_t)r;
        if (i->prefix == 2) {
            memcpy(row, tiles[i->reg][r], configuration.row_bytes[i->reg]);
        } else {
            memset(tiles[i->reg][r], 0, 64);
            memcpy(tiles[i->reg][r], row, configuration.row_bytes[i->reg]);
        }
    }
}

static int32_t dot_bytes(int32_t sum, const uint8_t *a, const uint8_t *b)
{
    for (int k = 0; k < 4; k++)
        sum = (int32_t)((uint32_t)sum + (uint32_t)(a[k] * (int8_t)b[k]));
    return sum;
}

static int32_t dot_words(int32_t sum, const uint8_t *a, const uint8_t *b)
{
    for (int k = 0; k < 2; k++) {
        int16_t x, y;
        memcpy(&x, a + 2 * k, 2);
        memcpy(&y, b + 2 * k, 2);
        sum = (int32_t)((uint32_t)sum + (uint32_t)(x * y));
    }
    return sum;
}

static float float_of(const uint8_t *bf16)
{
    return dtype_bf16_to_f32((uint16_t)(bf16[0] | bf16[1] << 8));
}

/* TDPBF16PS: all even elements of a row of k, all odd ones, their sum, and that to the sum there
 * was. The caller's MXCSR makes denormals zero, as the instruction does. */
static float dot_bf16(const uint8_t *a, const uint8_t *b, int groups)
{
    float even = 0, odd = 0;
    for (int k = 0; k < groups; k++) {
        even = fmaf(float_of(a + 4 * k), float_of(b + 64 * k), even);
        odd = fmaf(float_of(a + 4 * k + 2), float_of(b + 64 * k + 2), odd);
    }
    return even + odd;
}

static void multiply_bf16_tiles(const instruction *i)
{
    const uint8_t(*a)[64] = tiles[i->rm], (*b)[64] = tiles[i->second];
    unsigned control = _mm_getcsr();
    _mm_setcsr(0x9fc0); /* exceptions masked, FTZ, DAZ, to nearest */
    for (int r = 0; r < configuration.rows[i->reg]; r++) {
        for (int n = 0; n < configuration.row_bytes[i->reg] / 4; n++) {
            float sum;
            memcpy(&sum, tiles[i->reg][r] + 4 * n, 4);
            sum += dot_bf16(a[r], b[0] + 4 * n, configuration.row_bytes[i->rm] / 4);
            memcpy(tiles[i->reg][r] + 4 * n, &sum, 4);
        }
    }
    _mm_setcsr(control);
}

/* TDPBUSD: unsigned rows of A, signed columns of B. */
static void multiply_tiles(const instruction *i)
{
    const uint8_t(*a)[64] = tiles[i->rm], (*b)[64] = tiles[i->second];
    for (int r = 0; r < configuration.rows[i->reg]; r++) {
        for (int n = 0; n < configuration.row_bytes[i->reg] / 4; n++) {
            int32_t sum;
            memcpy(&sum, tiles[i->reg][r] + 4 * n, 4);
            for (int k = 0; k < configuration.row_bytes[i->rm] / 4; k++)
                sum = dot_bytes(sum, a[r] + 4 * k, b[k] + 4 * n);
            memcpy(tiles[i->reg][r] + 4 * n, &sum, 4);
        }
    }
}

/* Where the signal frame keeps the halves of a ymm register: XSAVE's standard form, SDM volume 1,
 * 13.4. The upper halves are absent, and zero, while their bit of XSTATE_BV is clear. */
#define XSTATE_BV_OFFSET 512
#define YMM_HIGH_OFFSET 576

static void read_ymm(ucontext_t *u, int number, uint8_t out[32])
{
    uint8_t *area = (uint8_t *)u->uc_mcontext.fpregs;
    uint64_t present;
    memcpy(&present, area + XSTATE_BV_OFFSET, 8);
    memcpy(out, &u->uc_mcontext.fpregs->_xmm[number], 16);
    memset(out + 16, 0, 16);
    if (present & 4)
        memcpy(out + 16, area + YMM_HIGH_OFFSET + 16 * number, 16);
}

static void write_ymm(ucontext_t *u, int number, const uint8_t in[32])
{
    uint8_t *area = (uint8_t *)u->uc_mcontext.fpregs;
    uint64_t present;
    memcpy(&present, area + XSTATE_BV_OFFSET, 8);
    if (!(present & 4))
        memset(area + YMM_HIGH_OFFSET, 0, 256);
    present |= 6;
    memcpy(area + XSTATE_BV_OFFSET, &present, 8);
    memcpy(&u->uc_mcontext.fpregs->_xmm[number], in, 16);
    memcpy(area + YMM_HIGH_OFFSET + 16 * number, in + 16, 16);
}

static void multiply_vectors(ucontext_t *u, const instruction *i)
{
    uint8_t sums[32], a[32], b[32] = {0};
    size_t bytes = i->is_256 ? 32 : 16;
    read_ymm(u, i->reg, sums);
    read_ymm(u, i->second, a);
    if (i->is_memory)
        memcpy(b, i->address + i->index, bytes);
    else
        read_ymm(u, i->rm, b);
    for (size_t slot = 0; slot < bytes; slot += 4) {
        int32_t sum;
        memcpy(&sum, sums + slot, 4);
        sum = i->opcode == 0x50 ? dot_bytes(sum, a + slot, b + slot)
                                : dot_words(sum, a + slot, b + slot);
        memcpy(sums + slot, &sum, 4);
    }
    memset(sums + bytes, 0, 32 - bytes);
    write_ymm(u, i->reg, sums);
}

/* The one that comes next; false: it is none of those. */
static bool emulate_next(ucontext_t *u)
{
    instruction i;
    if (!decode(u, &i))
        return false;
    if (i.opcode == 0x49 && i.prefix == 0)
        configure(&i);
    else if (i.opcode == 0x49 && i.prefix == 3 && !i.is_memory)
        memset(tiles[i.reg], 0, sizeof tiles[i.reg]);
    else if (i.opcode == 0x4b)
        load_or_store_tile(&i);
    else if (i.opcode == 0x5e && i.prefix == 1)
        multiply_tiles(&i);
    else if (i.opcode == 0x5c && i.prefix == 2)
        multiply_bf16_tiles(&i);
    else if ((i.opcode == 0x50 || i.opcode == 0x52) && i.prefix == 1)
        multiply_vectors(u, &i);
    else
        return false;
    u->uc_mcontext.gregs[REG_RIP] += (greg_t)i.bytes;
    count++;
    return true;
}

/* Tile instructions come in runs, and a signal costs more than an instruction. */
bool emulate_instruction(void *context)
{
    if (!emulate_next(context))
        return false;
    while (emulate_next(context))
        ;
    return true;
}

bool emulate_can(uint32_t missing_features)
{
    return (missing_features & ~(uint32_t)(CPU_AMX | CPU_AMX_BF16 | CPU_AVXVNNI)) == 0;
}

#else

bool emulate_instruction(void *context)
{
    (void)context;
    return false;
}

bool emulate_can(uint32_t missing_features)
{
    (void)missing_features;
    return false;
}

#endif
