/* A model of three layers, all of them the adder's:
 *   sum[i] = wave[i] + 5 - 6        layers 0 and 1, with what lies between them in the arena
 *   known[i] = table[i] + 1         layer 2, from a constant that the device reads by itself */
#ifndef CHAIN_H
#define CHAIN_H

#include <stdint.h>

#define CHAIN_WAVE 1000
#define CHAIN_KNOWN 40

struct chain_devices {
    void *adder;
};

int32_t chain_run(const int8_t *wave, int8_t *sum, int8_t *known, struct chain_devices *devices);

#endif
