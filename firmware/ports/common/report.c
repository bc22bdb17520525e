#include "report.h"

#include "uaccel_port.h"

void uaccel_report_text(struct uaccel_report *report, const char *text)
{
    while (*text != '\0' && report->used < UACCEL_REPORT_BYTES) {
        report->text[report->used] = *text++;
        report->used++;
    }
    report->text[report->used] = '\0';
}

void uaccel_report_hex(struct uaccel_report *report, const char *name, uint32_t value)
{
    char digits[9];
    for (uint32_t i = 0; i < 8u; ++i) {
        digits[i] = "0123456789abcdef"[value >> (28u - 4u * i) & 15u];
    }
    digits[8] = '\0';
    uaccel_report_text(report, " ");
    uaccel_report_text(report, name);
    uaccel_report_text(report, "=0x");
    uaccel_report_text(report, digits);
}
