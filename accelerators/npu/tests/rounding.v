/* What each step of the output stage and of an addition means, for test_rounding.py to prove. Registers are ports: a step
 * begins with `name.q` and gives `name.d`. CASE is what a proof fixes. Assumptions are what steps before give. */
module rounds #(parameter EXPONENT = 0, HALVES = 0) (input [95:0] number, whole, output holds);
    /* whole x 2^EXPONENT is the nearest such number. HALVES: 0 to even, 1 upwards. */
    localparam signed [95:0] HALF = EXPONENT == 0 ? 1 : 96'd1 << (EXPONENT - 1);
    wire signed [95:0] rest = $signed(number) - ($signed(whole) <<< EXPONENT);
    wire even = EXPONENT == 0 || !whole[0];
    assign holds = EXPONENT == 0 ? rest == 0 : HALVES == 1 ? rest >= -HALF && rest < HALF
        : rest > -HALF && rest < HALF || even && (rest == HALF || rest == -HALF);
endmodule

module sums (input [31:0] accumulator, bias, multiplier, shift);
    wire [31:0] sum, factor;
    wire [5:0] exponent;
    output_stage stage (.rst(1'b0), .accumulator0(accumulator), .bias0(bias), .multiplier0(multiplier), .shift0(shift),
        .\sum0.d (sum), .\factor0.d (factor), .\exponent0.d (exponent));
    always @* begin
        assert (sum == accumulator + bias);
        assert (factor == multiplier);
        assert (exponent == shift[5:0]);
    end
endmodule

/* CASE: the shift. */
module factors (input signed [31:0] sum, factor);
    localparam signed [5:0] SHIFT = `CASE;
    wire signed [32:0] a, b;
    wire [5:0] shift;
    output_stage stage (.rst(1'b0), .\sum0.q (sum), .\factor0.q (factor), .\exponent0.q (SHIFT), .command(25'd0),
        .\a_kept0.d (a), .\b_kept0.d (b), .\shift_kept0.d (shift));
    wire signed [31:0] moved = sum << (SHIFT > 0 ? SHIFT : 0);
    always @* begin
        assert (a == moved && b == factor);
        assert (shift == SHIFT);
    end
endmodule

/* CASE: digits that the sum has beyond the 24 of single precision. */
module single_factors (input signed [31:0] sum, input [31:0] factor, input [5:0] exponent);
    wire [32:0] a, b;
    wire [5:0] shift;
    wire [4:0] lost;
    wire below, holds;
    output_stage stage (.rst(1'b0), .\sum0.q (sum), .\factor0.q (factor), .\exponent0.q (exponent), .command(25'd1),
        .\a_kept0.d (a), .\b_kept0.d (b), .\shift_kept0.d (shift), .\lost_kept0.d (lost), .\below_kept0.d (below));
    wire has_rest = sum >= -(1 << 24) && sum <= 1 << 24;
    wire signed [95:0] fine = sum * 96'sd128 + $signed({64'd0, has_rest ? factor % 128 : 0});
    wire [95:0] size = fine < 0 ? -fine : fine;
    rounds #(`CASE) nearest (size, {63'd0, a}, holds);
    always @* begin
        assume (`CASE == 0 ? size < 1 << 24 : size >= 96'd1 << (`CASE + 23) && size < 96'd1 << (`CASE + 24));
        assert (lost == `CASE && holds && below == (fine < 0));
        assert (b == factor >> 7 && shift == exponent);
    end
endmodule

/* CASE: the shift. */
module high (input signed [65:0] product);
    localparam signed [5:0] SHIFT = `CASE;
    wire [31:0] rounded;
    wire signed [8:0] down;
    wire negative, holds;
    output_stage stage (.rst(1'b0), .\product0.q (product), .\shift_on0.q (SHIFT), .command(25'd0),
        .\rounded0.d (rounded), .\down_kept0.d (down), .\negative0.d (negative));
    wire signed [95:0] value = negative ? -$signed({64'd0, rounded}) : $signed({64'd0, rounded});
    rounds #(31, 1) nearest ({{30{product[65]}}, product}, value, holds);
    always @* begin
        assume (product >= -66'sh20000000_00000000 * 2 + 66'sh80000000 && product <= 66'sh40000000_00000000 - 66'sh80000000);
        assert (holds && (negative ? rounded != 0 : 1));
        assert (down == (SHIFT > 0 ? 0 : -SHIFT));
    end
endmodule

/* CASE: digits that the product has beyond 24. */
module single_high (input [65:0] product, input signed [5:0] shift, input [4:0] lost, input below);
    wire [31:0] rounded;
    wire signed [8:0] down;
    wire negative, holds;
    output_stage stage (.rst(1'b0), .\product0.q (product), .\shift_on0.q (shift), .\lost_on0.q (lost), .\below_on0.q (below),
        .command(25'd1), .\rounded0.d (rounded), .\down_kept0.d (down), .\negative0.d (negative));
    rounds #(`CASE) nearest ({30'd0, product}, {64'd0, rounded}, holds);
    always @* begin
        assume (`CASE == 0 ? product < 1 << 24 : product >= 66'd1 << (`CASE + 23) && product < 66'd1 << (`CASE + 24));
        assume (lost <= 16 && shift >= -31 && shift <= 30 && (lost == 0 || product >= 1 << 23));
        assert (holds && negative == below && down == 31 - shift - $signed({1'b0, lost}) - `CASE);
        assert (down > 0 || rounded >= 1 << 23 || rounded == 0);
    end
endmodule

/* CASE: the shift to the right. */
module halves_away (input [31:0] rounded, input negative);
    localparam [8:0] DOWN = `CASE;
    wire signed [33:0] scaled;
    wire holds;
    output_stage stage (.rst(1'b0), .\rounded0.q (rounded), .\down_kept0.q (DOWN), .\negative0.q (negative), .command(25'd0),
        .\scaled0.d (scaled));
    wire signed [33:0] size = negative ? -scaled : scaled;
    rounds #(`CASE, 1) nearest ({64'd0, rounded}, {{62{size[33]}}, size}, holds);
    always @* begin
        assume (rounded <= 32'h80000000);
        assert (holds);
    end
endmodule

/* CASE: the shift to the right. */
module halves_even (input [31:0] rounded, input negative);
    localparam [8:0] DOWN = `CASE;
    wire signed [33:0] scaled;
    wire holds;
    output_stage stage (.rst(1'b0), .\rounded0.q (rounded), .\down_kept0.q (DOWN), .\negative0.q (negative), .command(25'd1),
        .\scaled0.d (scaled));
    wire signed [33:0] size = negative ? -scaled : scaled;
    rounds #(`CASE) nearest ({64'd0, rounded}, {{62{size[33]}}, size}, holds);
    always @* begin
        assume (rounded <= 1 << 24);
        assert (holds);
    end
endmodule

/* CASE: the shift to the left. */
module grown (input [31:0] rounded, input negative);
    wire signed [33:0] scaled;
    localparam signed [8:0] DOWN = -`CASE;
    output_stage stage (.rst(1'b0), .\rounded0.q (rounded), .\down_kept0.q (DOWN), .\negative0.q (negative), .command(25'd1),
        .\scaled0.d (scaled));
    wire [95:0] exact = {64'd0, rounded} << `CASE;
    wire [95:0] size = negative ? -scaled : scaled;
    always @* begin
        assume (rounded <= 1 << 24 && (rounded >= 1 << 23 || rounded == 0));
        assert (size == (exact < 96'h7fffffff ? exact : 96'h7fffffff));
    end
endmodule

module clamp (input signed [33:0] scaled, input signed [7:0] zero_point, least, greatest, input single);
    wire signed [7:0] got;
    wire signed [39:0] value = scaled + zero_point;
    output_stage stage (.rst(1'b0), .\scaled0.q (scaled), .\byte0.d (got), .command({greatest, least, zero_point, single}));
    always @* begin
        assume (least <= greatest);
        assert (got == (value < least ? least : value > greatest ? greatest : value));
    end
endmodule

module products (input signed [32:0] a, b);
    wire signed [65:0] product;
    output_stage stage (.rst(1'b0), .\a_kept0.q (a), .\b_kept0.q (b), .\product0.d (product));
    wire signed [65:0] exact = a * b;
    always @* assert (product == exact);
endmodule

/* CASE: by how much an operand is shifted to the left. */
module operands (input signed [7:0] first, second, zero_point1, zero_point2, input [31:0] up, shift1, shift2);
    wire signed [31:0] factor1, factor2, once1, once2;
    wire [383:0] numbers = {160'd0, shift2, 32'd0, {24{zero_point2[7]}}, zero_point2, shift1, 32'd0,
        {24{zero_point1[7]}}, zero_point1, up};
    addition rounded (.rst(1'b0), .once(1'b0), .numbers(numbers), .first_0(first), .second_0(second),
        .\factor1_0.d (factor1), .\factor2_0.d (factor2));
    addition real_sum (.rst(1'b0), .once(1'b1), .numbers(numbers), .first_0(first), .second_0(second),
        .\factor1_0.d (once1), .\factor2_0.d (once2));
    wire signed [31:0] moved1 = first - zero_point1, moved2 = second - zero_point2;
    wire [5:0] up1 = up + ($signed(shift1) > 0 ? shift1 : 0), up2 = up + ($signed(shift2) > 0 ? shift2 : 0);
    always @* begin
        assume (up <= 30 && $signed(shift1) >= -31 && $signed(shift1) <= 30);
        assume ($signed(shift2) >= -31 && $signed(shift2) <= 30);
        assert (up1 != `CASE || factor1 == moved1 << `CASE);
        assert (up2 != `CASE || factor2 == moved2 << `CASE);
        assert (once1 == moved1 && once2 == moved2);
    end
endmodule

module addition_products (input signed [31:0] factor1, factor2, factor3, multiplier1, multiplier2, multiplier3);
    wire signed [63:0] product1, product2, product3;
    wire [383:0] numbers = {96'd0, multiplier3, 64'd0, multiplier2, 64'd0, multiplier1, 64'd0};
    addition sum (.rst(1'b0), .numbers(numbers), .\factor1_0.q (factor1), .\factor2_0.q (factor2),
        .\output_factor_0.q (factor3), .\product1_0.d (product1), .\product2_0.d (product2),
        .\output_product_0.d (product3));
    wire signed [63:0] exact1 = factor1 * multiplier1, exact2 = factor2 * multiplier2, exact3 = factor3 * multiplier3;
    always @* assert (product1 == exact1 && product2 == exact2 && product3 == exact3);
endmodule

/* CASE: the shift to the right. It is proven of both operands and of the sum. */
module scales (input signed [63:0] product, input [31:0] shift);
    wire signed [33:0] term1, term2;
    wire signed [48:0] value;
    wire holds;
    wire [383:0] numbers = {64'd0, shift, 64'd0, shift, 64'd0, shift, 96'd0};
    addition sum (.rst(1'b0), .once(1'b0), .numbers(numbers), .\product1_0.q (product), .\product2_0.q (product),
        .\output_product_0.q (product), .\term0_0.d (term1), .\term1_0.d (term2), .\value_0.d (value));
    wire signed [95:0] high = (product + 96'sh40000000) >>> 31;
    wire signed [33:0] size = high < 0 ? -term1 : term1;
    rounds #(`CASE, 1) nearest (high < 0 ? -high : high, {{62{size[33]}}, size}, holds);
    always @* begin
        assume (product >= -64'sh40000000_00000000 && product <= 64'sh40000000_00000000);
        assume (shift == -`CASE || `CASE == 0 && shift <= 30);
        assert (holds && term1 == term2 && term1 == value);
    end
endmodule

/* CASE: the shift to the left. */
module raised (input signed [33:0] term1, term2, input [31:0] shift);
    wire [31:0] factor;
    addition sum (.rst(1'b0), .numbers({64'd0, shift, 288'd0}), .\term0_0.q (term1), .\term1_0.q (term2),
        .\output_factor_0.d (factor));
    wire [31:0] both = term1 + term2;
    always @* begin
        assume (shift == `CASE || `CASE == 0 && $signed(shift) < 0 && $signed(shift) >= -31);
        assert (factor == both << `CASE);
    end
endmodule

/* CASE: the shift, of a sum that is rounded once. */
module exact_sums (input signed [63:0] product1, product2, input [30:0] tolerance);
    localparam [31:0] SHIFT = `CASE;
    wire signed [66:0] exact;
    wire [383:0] numbers = {96'd0, 1'b0, tolerance, 224'd0, SHIFT};
    addition sum (.rst(1'b0), .once(1'b1), .numbers(numbers), .\product1_0.q (product1), .\product2_0.q (product2),
        .\exact_0.d (exact));
    always @* begin
        assume (product1 >= -64'sh100_00000000 && product1 <= 64'sh100_00000000);
        assume (product2 >= -64'sh100_00000000 && product2 <= 64'sh100_00000000);
        assert (exact == product1 + product2 + (64'sd1 << (`CASE - 1)) + $signed({33'd0, tolerance}));
    end
endmodule

/* CASE: the shift. */
module once (input signed [66:0] exact, input [30:0] tolerance);
    localparam [31:0] SHIFT = `CASE;
    wire signed [48:0] got;
    localparam signed [63:0] HALF = 64'sd1 << (`CASE - 1);
    wire [383:0] numbers = {96'd0, 1'b0, tolerance, 224'd0, SHIFT};
    addition sum (.rst(1'b0), .once(1'b1), .numbers(numbers), .\exact_0.q (exact), .\real_0.d (got));
    wire signed [66:0] real_sum = exact - HALF - $signed({33'd0, tolerance});
    wire signed [66:0] floor = real_sum >>> `CASE;
    wire signed [66:0] off = real_sum - (floor <<< `CASE) - HALF;
    wire near = off <= $signed({33'd0, tolerance}) && off >= -$signed({33'd0, tolerance});
    wire up = near ? floor[0] : off > 0;
    always @* begin
        assume (real_sum >= -64'sh200_00000000 && real_sum <= 64'sh200_00000000);
        assume ({33'd0, tolerance} < HALF);
        assert (got == floor + $signed({1'b0, up}));
    end
endmodule

module addition_ends (input signed [48:0] value, rounded, input signed [7:0] zero_point, least, greatest);
    wire signed [7:0] got;
    wire signed [48:0] once;
    wire [383:0] numbers = {{24{greatest[7]}}, greatest, {24{least[7]}}, least, 64'd0, {24{zero_point[7]}}, zero_point, 224'd0};
    addition sum (.rst(1'b0), .once(1'b1), .numbers(numbers), .\value_0.q (value), .\sum_byte_0.d (got),
        .\real_on_0.q (rounded), .\value_0.d (once));
    wire signed [51:0] moved = value + zero_point;
    always @* begin
        assume (least <= greatest);
        assert (got == (moved < least ? least : moved > greatest ? greatest : moved));
        assert (once == rounded);
    end
endmodule
