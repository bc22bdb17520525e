#ifdef __cplusplus
extern "C"
#endif
int my_ai_hw_conv2dnchw(const float *ifmap, const float *weights, float *result, int oc, int iw, int ih, int ic, int kh,
                        int kw);
