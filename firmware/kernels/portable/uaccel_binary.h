/* Elementwise operators of two inputs with broadcasting: int8 and int16 from one description.
 *
 * The including header says what is computed, then includes this file, which forgets it again:
 *
 *   UACCEL_BINARY   the operator's name, also that of its structure, which holds the loops
 *   UACCEL_FIRST    prepares an element of the first input: int32_t (p, int32_t); less p->zero_point1 if not defined
 *   UACCEL_SECOND   prepares an element of the second; less p->zero_point2
 *   UACCEL_COMBINE  the output element, in range: int32_t (p, int32_t, int32_t)
 *   UACCEL_SECOND_TYPE   the second input's type, where it is not the first's
 *   UACCEL_RESULT   the output elements' type, where it is not the inputs'
 *
 * The loops are nested, outermost first; a stride of 0 repeats an input. Those that run once fold away. */

#include "uaccel_fixedpoint.h"

#ifndef UACCEL_FIRST
#define UACCEL_FIRST(p, value) ((value) - (p)->zero_point1)
#define UACCEL_SECOND(p, value) ((value) - (p)->zero_point2)
#endif

#define UACCEL_BODY "uaccel_binary_body.h"
#define UACCEL_TYPES 2
#include "uaccel_types.h"

#undef UACCEL_BINARY
#undef UACCEL_FIRST
#undef UACCEL_SECOND
#undef UACCEL_COMBINE
#undef UACCEL_RESULT
#undef UACCEL_SECOND_TYPE
