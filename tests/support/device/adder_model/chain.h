/* A model of three layers, all of them accelerators':
 *   sum[i] = wave[i] + 5 - 6        layers 0 and 1, the adder's, with what lies between them in the arena
 *   known[i] = table[i] + 1         layer 2, from a constant that the adder reads by itself; the swapper tells the 1
 * Two POISONs at the beginning of the wave make layer 1 write where the adder does not reach, two VENOMs where it only
 * reads: over the constants. */
#ifndef CHAIN_H
#define CHAIN_H

#include <stdint.h>

#define CHAIN_WAVE 1000
#define CHAIN_KNOWN 40
#define CHAIN_POISON 77
#define CHAIN_VENOM 78

struct chain_devices {
    void *adder;
    void *swapper;
};

int32_t chain_run(const int8_t *wave, int8_t *sum, int8_t *known, struct chain_devices *devices);

#endif
