"""Networks that give one vector per image, with the weights their authors published.

    sscd                  copies            Pizzi et al., CVPR 2022
    cosplace              places            Berton et al., CVPR 2022
    eigenplaces           places            Berton et al., ICCV 2023
    mixvpr                places            Ali-bey et al., WACV 2023
    boq                   places            Ali-bey et al., CVPR 2024
    salad                 places            Izquierdo and Civera, CVPR 2024
    megaloc               places            Berton and Masone, 2025
    delg                  landmarks         Cao et al., ECCV 2020
    superglobal           landmarks         Shao et al., ICCV 2023

`place_heads.py` has a class per head, `../releases.py` says where each network's weights are, `place_layouts.py` reads
them; design and sizes come from the file. None of these networks is trained here.
"""
