/* All blocked kernels for one way to read weights and elements; included by headers that have another one than
 * uaccel_blocked.h. */
#include "uaccel_blocked_body.h"
#include "uaccel_conv2d_blocked_body.h"
#include "uaccel_depthwise_conv2d_blocked_body.h"
#include "uaccel_fully_connected_blocked_body.h"
#undef UACCEL_ROUNDED
#undef UACCEL_BLOCKED_ROUND
