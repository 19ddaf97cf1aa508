/* The entry of libFuzzer, for one target: FUZZ_NAME is defined by the build. */
#include "tests/fuzz/fuzz.h"

#define JOIN(a, b) a##b
#define TARGET(name) JOIN(fuzz_, name)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    TARGET(FUZZ_NAME)(data, bytes);
    return 0;
}
