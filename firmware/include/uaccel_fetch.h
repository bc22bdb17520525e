/* Constants that are copied from slow memory into the workspace while the layer before computes.
 *
 * The generated source copies by memcpy, at once, unless it is built with UACCEL_FETCH: then the port has the two
 * functions, and a DMA channel can work beside the CPU. */
#ifndef UACCEL_FETCH_H
#define UACCEL_FETCH_H

#include <stddef.h>
#include <string.h>

#ifdef UACCEL_FETCH

/* Begin to copy, or queue it: `to` is a multiple of 16, `from` of 4. Several copies may be under way at once. Neither
 * place is touched by the CPU before the next uaccel_fetch_wait. */
void uaccel_fetch(void *to, const void *from, size_t bytes);

/* Return when all copies are done that were begun, and the CPU sees them (caches included). */
void uaccel_fetch_wait(void);

#else

static inline void uaccel_fetch(void *to, const void *from, size_t bytes)
{
    memcpy(to, from, bytes);
}

static inline void uaccel_fetch_wait(void)
{
}

#endif

#endif
