"""Networks for landmarks that CiDeR is compared with, all in CiDeR's frame: a ResNet, a head, a vector of unit length.

    gem     GeM, fully connected layer and batch norm       Yokoo et al., CVPRW 2020
    solar   second-order attention                          Ng et al., ECCV 2020
    glam    global and local, spatial and channel attention Song et al., WACV 2022
    dolg    orthogonal fusion of local and global features  Yang et al., ICCV 2021
    token   visual tokens refined by attention              Wu et al., AAAI 2022

One design per file; each file says which reading it implements where paper and published code differ.
"""
