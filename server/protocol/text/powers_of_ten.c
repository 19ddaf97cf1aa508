#include "server/protocol/text/powers_of_ten.h"

const power_of_ten powers_of_ten[POWERS_OF_TEN_MAX - POWERS_OF_TEN_MIN + 1] = {
#include "server/protocol/text/powers_of_ten.inc"
};
