/* SVDF for Arm Helium. */
#ifndef UACCEL_SVDF_DOTS_HELIUM_H
#define UACCEL_SVDF_DOTS_HELIUM_H

#include "uaccel_dots_helium.h"

#define UACCEL_DOTS(name) name##_dots_helium
#include "uaccel_svdf_dots_body.h"
#undef UACCEL_DOTS

#endif
