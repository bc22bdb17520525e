/* What the kernels for floats share: sums of products, and what is done with a sum.
 *
 * A sum begins with zero and takes its products one by one, in the order of the weights. Each product is rounded before
 * it is added: with that every CPU and compiler gives the same bits. */
#ifndef UACCEL_FLOAT_H
#define UACCEL_FLOAT_H

#include "uaccel_kernel.h"

/* Compilers like to round a product and an addition once, where the CPU can. */
#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF
#elif defined(__GNUC__) && defined(__FP_FAST_FMAF)
#if defined(__arm__)
#define UACCEL_FLOAT_ROUNDED(product) __asm__("" : "+t"(product))
#elif defined(__aarch64__)
#define UACCEL_FLOAT_ROUNDED(product) __asm__("" : "+w"(product))
#elif defined(__riscv)
#define UACCEL_FLOAT_ROUNDED(product) __asm__("" : "+f"(product))
#elif defined(__SSE__)
#define UACCEL_FLOAT_ROUNDED(product) __asm__("" : "+x"(product))
#else
#define UACCEL_FLOAT_ROUNDED(product) __asm__("" : "+m"(product))
#endif
#endif
#ifndef UACCEL_FLOAT_ROUNDED
#define UACCEL_FLOAT_ROUNDED(product)
#endif

/* A number that stands by itself: compilers make vectors for Helium, which takes numbers below 2^-126 for zero. */
#if defined(__GNUC__) && defined(__ARM_FEATURE_MVE)
#define UACCEL_FLOAT_ALONE(value) __asm__("" : "+t"(value))
#else
#define UACCEL_FLOAT_ALONE(value)
#endif

/* `activation` is 0 for none, 1 for a lower bound, 2 for both. NaN becomes a bound. */
struct uaccel_float_finish {
    int32_t activation;
    float lower, upper;
};

UACCEL_KERNEL float uaccel_float_finish(const struct uaccel_float_finish *finish, float value)
{
    UACCEL_FLOAT_ALONE(value);
    if (finish->activation > 1) {
        value = value < finish->upper ? value : finish->upper;
    }
    UACCEL_FLOAT_ALONE(value);
    return finish->activation == 0 || value > finish->lower ? value : finish->lower;
}

UACCEL_KERNEL float uaccel_float_mac(float sum, float value, float weight)
{
    float product = value * weight;
    UACCEL_FLOAT_ROUNDED(product);
    sum += product;
    UACCEL_FLOAT_ALONE(sum);
    return sum;
}

/* How many taps at `first`, `first` + `step`, ... lie before an input; and how many of `extent` lie inside of it. */
UACCEL_KERNEL uaccel_index uaccel_float_skipped(uaccel_index first, uaccel_index step)
{
    return first < 0 ? (step - 1 - first) / step : 0;
}

UACCEL_KERNEL uaccel_index uaccel_float_inside(uaccel_index first, uaccel_index step, uaccel_index extent,
                                               uaccel_index end)
{
    const uaccel_index last = first < end ? (end - 1 - first) / step + 1 : 0;
    const uaccel_index skipped = uaccel_float_skipped(first, step);
    const uaccel_index taken = last < extent ? last : extent;
    return taken > skipped ? taken - skipped : 0;
}

#define UACCEL_FLOAT_TAKE(n, value)                             \
    {                                                           \
        const float taken = value;                              \
        sum##n##0 = uaccel_float_mac(sum##n##0, taken, weight0); \
        sum##n##1 = uaccel_float_mac(sum##n##1, taken, weight1); \
        sum##n##2 = uaccel_float_mac(sum##n##2, taken, weight2); \
        sum##n##3 = uaccel_float_mac(sum##n##3, taken, weight3); \
    }
/* A tap of four channels that lie side by side, each with its weight. */
#define UACCEL_FLOAT_TAP(n, tap)                                       \
    {                                                                  \
        sum##n##0 = uaccel_float_mac(sum##n##0, (tap)[0], weights[0]); \
        sum##n##1 = uaccel_float_mac(sum##n##1, (tap)[1], weights[1]); \
        sum##n##2 = uaccel_float_mac(sum##n##2, (tap)[2], weights[2]); \
        sum##n##3 = uaccel_float_mac(sum##n##3, (tap)[3], weights[3]); \
    }
#define UACCEL_FLOAT_BEGIN(n) float sum##n##0 = 0, sum##n##1 = 0, sum##n##2 = 0, sum##n##3 = 0
#define UACCEL_FLOAT_END(n)          \
    {                                \
        sums[4 * (n)] = sum##n##0;     \
        sums[4 * (n) + 1] = sum##n##1; \
        sums[4 * (n) + 2] = sum##n##2; \
        sums[4 * (n) + 3] = sum##n##3; \
    }

#define UACCEL_FN(name) name
#define UACCEL_FLOAT_WEIGHT float
#define UACCEL_FLOAT_WIDE(weights, first, second) (*(first) = (weights)[0], *(second) = (weights)[1])
#include "uaccel_float_rows_body.h"

#endif
