/* SVDF for Arm's DSP extension. */
#ifndef UACCEL_SVDF_DOTS_DSP_H
#define UACCEL_SVDF_DOTS_DSP_H

#include "uaccel_dots_dsp.h"
#include "uaccel_svdf.h"

#define UACCEL_DOTS(name) name##_dots_dsp
#include "uaccel_svdf_dots_scalar_body.h"
#undef UACCEL_DOTS

#endif
