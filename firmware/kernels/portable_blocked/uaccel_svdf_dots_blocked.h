/* SVDF for any CPU. */
#ifndef UACCEL_SVDF_DOTS_BLOCKED_H
#define UACCEL_SVDF_DOTS_BLOCKED_H

#include "uaccel_dots_blocked.h"
#include "uaccel_svdf.h"

#define UACCEL_DOTS(name) name##_dots_blocked
#include "uaccel_svdf_dots_scalar_body.h"
#undef UACCEL_DOTS

#endif
