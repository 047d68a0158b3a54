"""Program + plan + target -> nest. One pure function, ``build_nest``, and the steps it is made of."""
