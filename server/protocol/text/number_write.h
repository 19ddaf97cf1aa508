#ifndef SERVER_PROTOCOL_TEXT_NUMBER_WRITE_H
#define SERVER_PROTOCOL_TEXT_NUMBER_WRITE_H

#include <stdint.h>

/* Numbers to decimal text: the shortest text that reads back as the same value of its type, and of
 * those the nearest (Raffaello Giulietti, "The Schubfach way to render doubles", 2020). JSON has
 * no NaN: it is written as the bare token NaN, infinities as Infinity and -Infinity. Pure. Each
 * writes at most its _CHARS bytes, no zero byte, and returns the first free byte. */

#define NUMBER_F32_CHARS 24 /* and those of 16 bits */
#define NUMBER_F64_CHARS 32
#define NUMBER_INTEGER_CHARS 20

char *number_write_f32(char *out, float value);
/* Given as bits; shortest among texts that round (to nearest even) to the same 16 bits. */
char *number_write_f16(char *out, uint16_t bits);
char *number_write_bf16(char *out, uint16_t bits);
char *number_write_f64(char *out, double value);
char *number_write_u64(char *out, uint64_t value);
char *number_write_i64(char *out, int64_t value);

#endif
