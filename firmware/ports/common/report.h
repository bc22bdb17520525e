/* One line of text, put together without printf: for fault handlers. */
#ifndef UACCEL_REPORT_H
#define UACCEL_REPORT_H

#include <stdint.h>

enum { UACCEL_REPORT_BYTES = 240 };

struct uaccel_report {
    uint32_t used;
    char text[UACCEL_REPORT_BYTES + 1];
};

/* What does not fit is cut off. All zero is the empty report. */
void uaccel_report_text(struct uaccel_report *report, const char *text);
void uaccel_report_hex(struct uaccel_report *report, const char *name, uint32_t value); /* " name=0x0000abcd" */

#endif
