#include "my_ai_hw.h"

extern "C" int my_ai_hw_conv2dnchw(const float *ifmap, const float *weights, float *result, int oc, int iw, int ih,
                                   int ic, int kh, int kw)
{
    if (kh % 2 == 0 || kw % 2 == 0) {
        return -1;
    }
    for (int o = 0; o < oc; ++o) {
        for (int y = 0; y < ih; ++y) {
            for (int x = 0; x < iw; ++x) {
                auto sum = 0.0f;
                for (int i = 0; i < ic * kh * kw; ++i) {
                    const int row = y + i / kw % kh - kh / 2, column = x + i % kw - kw / 2;
                    if (row >= 0 && row < ih && column >= 0 && column < iw) {
                        sum += ifmap[(i / (kh * kw) * ih + row) * iw + column] * weights[o * ic * kh * kw + i];
                    }
                }
                result[(o * ih + y) * iw + x] = sum;
            }
        }
    }
    return 0;
}
