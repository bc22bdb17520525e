/* SVDF on int8 frames by dot products: for one family, which UACCEL_DOTS names; included once a
 * family. */

#ifndef UACCEL_SVDF_DOTS_H
#define UACCEL_SVDF_DOTS_H

#include "uaccel_svdf.h"

struct uaccel_svdf_dots {
    struct uaccel_svdf layer;
    uaccel_index filled; /* bytes of a frame, filled up */
};

#endif

#define UACCEL_ELEMENT int8_t
#define UACCEL_FN(name) UACCEL_DOTS(name##_s8)
#include "uaccel_svdf_dots_type_body.h"

#define UACCEL_ELEMENT int16_t
#define UACCEL_FN(name) UACCEL_DOTS(name##_s16)
#include "uaccel_svdf_dots_type_body.h"
